// npm openai: OpenAIRealtimeWS, which speaks wss only.

import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

import { provocations, recording, runChecks, servers } from "./driver.mjs";
import { provokeAll, refusedUpgrades } from "./provoking.mjs";
import { HELLO, REPEAT, SILENCE, STORY, WEATHER, base64, chunks, durationMs, tone } from "./speech.mjs";
import { Talk, codeOf, frameOf, written } from "./talk.mjs";

const TOOL = {
  type: "function",
  name: "get_weather",
  description: "Get the weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const HEARD_MS = 1000;

async function connect({ url, model, key }) {
  const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1` });
  const rt = await OpenAIRealtimeWS.create(client, { model });
  const talk = new Talk((event) => ("type" in event ? rt.send(event) : rt.socket.send(frameOf(event))));
  const surfaced = [];
  rt.on("event", (event) => talk.add(event));
  rt.on("error", (error) => surfaced.push(error.error ? error.error.code : error.message));
  rt.socket.on("close", () => talk.end());
  return { rt, talk, surfaced };
}

async function configured(server, session = {}) {
  const connection = await connect(server);
  const { rt, talk } = connection;
  await talk.until("session.created");
  rt.send({ type: "session.update", session: { type: "realtime", ...session } });
  await talk.until("session.updated");
  return connection;
}

function speak(rt, pcm) {
  for (const chunk of chunks(pcm, SILENCE)) rt.send({ type: "input_audio_buffer.append", audio: base64(chunk) });
}

async function say({ rt, talk }, text, response = { output_modalities: ["text"] }) {
  rt.send({ type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_text", text }] } });
  rt.send({ type: "response.create", response });
  return (await talk.until("response.done")).at(-1);
}

const joined = (events, kind) => events.filter((event) => event.type === kind).map((event) => event.delta);
const said = (events) => joined(events, "response.output_audio_transcript.delta").join("");
const heardMs = (events) => durationMs(joined(events, "response.output_audio.delta").map(atob).join("").length);

async function newSession() {
  const connection = await configured(servers.scripted);
  const turn = written(await say(connection, "Hello."));
  connection.rt.close();
  return turn;
}

await runChecks("openai", {
  async conversation() {
    const { rt, talk } = await configured(servers.local, { audio: { input: { transcription: { model: "whisper-1" } } } });
    const turns = [];
    for (const name of ["capital", "interrupt"]) {
      speak(rt, recording(name));
      const events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed");
      const { transcript } = events.find((event) => event.type.endsWith("transcription.completed"));
      turns.push({ heard: transcript, said: said(events), seconds: heardMs(events) / 1000 });
    }
    rt.close();
    return { turns };
  },

  async tool_call() {
    const { rt, talk } = await configured(servers.scripted, { tools: [TOOL] });
    speak(rt, tone(WEATHER));
    const call = (await talk.until("response.done")).at(-1).response.output[0];
    rt.send({ type: "conversation.item.create", item: { type: "function_call_output", call_id: call.call_id, output: "sunny" } });
    rt.send({ type: "response.create" });
    const answer = await talk.until("response.done");
    rt.close();
    return { name: call.name, arguments: call.arguments, said: said(answer) };
  },

  async barge_in() {
    const { rt, talk } = await configured(servers.scripted);
    speak(rt, tone(STORY));
    const events = await talk.until("response.output_audio.delta");
    while (heardMs(events) < HEARD_MS) events.push(...(await talk.until("response.output_audio.delta")));
    speak(rt, tone(REPEAT));
    await talk.until("input_audio_buffer.speech_started");
    rt.send({ type: "conversation.item.truncate", item_id: events.at(-1).item_id, content_index: 0, audio_end_ms: HEARD_MS });
    const { status, status_details } = (await talk.until("response.done")).at(-1).response;
    const ending = await talk.until("conversation.item.truncated", "response.done");
    const { audio_end_ms } = ending.find((event) => event.type === "conversation.item.truncated");
    const answer = ending.find((event) => event.type === "response.done") ?? (await talk.until("response.done")).at(-1);
    rt.close();
    return { status, reason: status_details.reason, audio_end_ms, said: written(answer) };
  },

  async errors() {
    const connection = await configured(servers.scripted, { audio: { input: { turn_detection: null } } });
    const { rt, talk, surfaced } = connection;
    const answer = (await say(connection, "Hello.", {})).response.output[0].id;
    const turn = async (text) => written(await say(connection, text));
    const provoked = await provokeAll(provocations(), { talk, surfaced, answer, say: turn });
    rt.close();
    return { provoked };
  },

  async session_ends() {
    const ended = {};
    const expiring = await connect(servers.expiring);
    ended.session_expired = codeOf((await expiring.talk.rest()).at(-1));
    const deaf = await configured(servers.deaf);
    speak(deaf.rt, tone(HELLO));
    ended.server_error = codeOf((await deaf.talk.rest()).at(-1));
    return { ended, turn: await newSession() };
  },

  async refused_upgrades() {
    const refused = {};
    for (const [code, server] of Object.entries(refusedUpgrades(servers))) {
      const { talk, surfaced } = await connect(server);
      await talk.rest();
      refused[code] = surfaced[0];
    }
    return { refused, turn: await newSession() };
  },
});
