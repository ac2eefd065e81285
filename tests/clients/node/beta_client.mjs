// openai-realtime-api: the beta dialect of 2024, as its clients spoke it.

import { RealtimeClient } from "openai-realtime-api";

import { provocations, recording, runChecks, servers } from "./driver.mjs";
import { provokeAll, refusedUpgrades } from "./provoking.mjs";
import { HELLO, REPEAT, SILENCE, STORY, WEATHER, chunks, tone } from "./speech.mjs";
import { Talk, codeOf, frameOf, written } from "./talk.mjs";

const TOOL = {
  name: "get_weather",
  description: "Get the weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const HEARD_MS = 1000;
const RATE = 24_000;
const BY_VAD = { turn_detection: { type: "server_vad" } };

// The client sends its configuration as the connection opens, and again with each tool.
async function connect({ url, model, key }, sessionConfig = {}) {
  const client = new RealtimeClient({ url: `${url.replace(/^http/, "ws")}/v1/realtime`, model, apiKey: key, sessionConfig });
  const talk = new Talk((event) => ("type" in event ? client.realtime.send(event.type, event) : client.realtime.ws.send(frameOf(event))));
  const surfaced = [];
  client.realtime.on("server.*", (event) => talk.add(event));
  client.realtime.on("server.error", (event) => surfaced.push(event.error.code));
  client.realtime.on("close", () => talk.end());
  await client.connect();
  return { client, talk, surfaced };
}

async function configured(server, sessionConfig) {
  const connection = await connect(server, sessionConfig);
  await connection.talk.until("session.updated");
  return connection;
}

function speak(client, ...pcm) {
  for (const chunk of chunks(...pcm)) client.appendInputAudio(new Int16Array(chunk.buffer));
}

async function say({ client, talk }, text) {
  client.sendUserMessageContent([{ type: "input_text", text }]);
  return (await talk.until("response.done")).at(-1);
}

const lastItem = (client) => client.conversation.getItems().at(-1);

async function newSession() {
  const connection = await configured(servers.scripted);
  const turn = written(await say(connection, "Hello."));
  connection.client.disconnect();
  return turn;
}

const FORMATS = { "audio/pcm": "pcm16" };

// A provocation is written in GA's words.
function inBeta({ send, restore, ...provocation }) {
  return { ...provocation, send: send.map(flat), restore: restore.map(flat) };
}

function flat(event) {
  if (event.type !== "session.update") return event;
  const { type, audio, ...session } = event.session;
  if (!Object.keys(event.session).length) return { type: "session.update" };
  const { transcription, format, ...input } = audio?.input ?? {};
  if (transcription) input.input_audio_transcription = transcription;
  if (format) input.input_audio_format = FORMATS[format.type];
  return { ...event, session: { ...session, ...audio?.output, ...input } };
}

const isInBeta = ({ send }) => !send.some((event) => event.session?.truncation);

await runChecks("openai-realtime-api", {
  async conversation() {
    const { client, talk } = await configured(servers.local, BY_VAD);
    const turns = [];
    for (const name of ["capital", "interrupt"]) {
      speak(client, recording(name), SILENCE);
      const events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed");
      const { transcript } = events.find((event) => event.type.endsWith("transcription.completed"));
      const { formatted } = lastItem(client);
      turns.push({ heard: transcript, said: formatted.transcript, seconds: formatted.audio.length / RATE });
    }
    client.disconnect();
    return { turns };
  },

  async tool_call() {
    const { client, talk } = await configured(servers.scripted, BY_VAD);
    client.addTool(TOOL, () => "sunny");
    await talk.until("session.updated");
    speak(client, tone(WEATHER), SILENCE);
    const call = (await talk.until("response.done")).at(-1).response.output[0];
    await talk.until("response.done");
    const said = lastItem(client).formatted.transcript.replaceAll('"', ""); // the client sends its tool's result as JSON
    client.disconnect();
    return { name: call.name, arguments: call.arguments, said };
  },

  async barge_in() {
    const { client, talk, surfaced } = await configured(servers.scripted, BY_VAD);
    speak(client, tone(STORY), SILENCE);
    await talk.until("response.audio.delta");
    while (lastItem(client).formatted.audio.length < (HEARD_MS * RATE) / 1000) await talk.until("response.audio.delta");
    const { id } = lastItem(client);
    const cancel = () => client.cancelResponse(id, (HEARD_MS * RATE) / 1000);
    const cut = new Promise((resolve) => client.on("conversation.interrupted", () => resolve(cancel())));
    speak(client, tone(REPEAT));
    await cut;
    // The detector has ended the response before the client asks for it.
    const events = await talk.until("response.done", "error", "conversation.item.truncated");
    const { status, status_details } = events.find((event) => event.type === "response.done").response;
    const { audio_end_ms } = events.find((event) => event.type === "conversation.item.truncated");
    speak(client, SILENCE);
    const said = written((await talk.until("response.done")).at(-1));
    client.disconnect();
    return { status, reason: status_details.reason, audio_end_ms, said, errors: surfaced };
  },

  async errors() {
    const connection = await configured(servers.scripted);
    const { client, talk, surfaced } = connection;
    const answer = (await say(connection, "Hello.")).response.output[0].id;
    const listed = provocations().filter(isInBeta).map(inBeta);
    const provoked = await provokeAll(listed, { talk, surfaced, answer, say: async (text) => written(await say(connection, text)) });
    client.disconnect();
    return { provoked };
  },

  async session_ends() {
    const ended = {};
    const expiring = await connect(servers.expiring);
    ended.session_expired = codeOf((await expiring.talk.rest()).at(-1));
    const deaf = await configured(servers.deaf, BY_VAD);
    speak(deaf.client, tone(HELLO), SILENCE);
    ended.server_error = codeOf((await deaf.talk.rest()).at(-1));
    return { ended, turn: await newSession() };
  },

  // The client says that it could not connect, and not why.
  async refused_upgrades() {
    const refused = {};
    for (const [code, server] of Object.entries(refusedUpgrades(servers))) {
      refused[code] = await connect(server).then(() => "connected", (error) => error.message);
    }
    return { refused, turn: await newSession() };
  },
});
