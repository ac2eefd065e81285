// @openai/agents-realtime with its default settings; the same in Node and in a browser.

import { provokeAll, refusedUpgrades } from "./provoking.mjs";
import { HELLO, REPEAT, SILENCE, STORY, WEATHER, chunks, durationMs, tone } from "./speech.mjs";
import { Talk, codeOf, frameOf, written } from "./talk.mjs";

const INSTRUCTIONS = "You are a helpful AI assistant. Keep answers short.";
const HEARD_MS = 1000;

// `sdk` is the package; `open` makes a transport.
export function agentsChecks({ sdk, open, servers, provocations, recording }) {
  async function connect({ url, model, key }, tools = []) {
    const agent = new sdk.RealtimeAgent({ name: "Assistant", instructions: INSTRUCTIONS, tools });
    const transport = open();
    const session = new sdk.RealtimeSession(agent, { transport });
    const talk = new Talk((event) => transport.connectionState.websocket.send(frameOf(event)));
    const surfaced = [];
    transport.on("*", (event) => talk.add(event));
    transport.on("disconnected", () => talk.end());
    session.on("error", ({ error }) => surfaced.push(error.error ? error.error.code : String(error)));
    await session.connect({ apiKey: key, url: `${url.replace(/^http/, "ws")}/v1/realtime?model=${model}` });
    return { session, talk, surfaced };
  }

  // The SDK updates the session when the connection opens, and again at `session.created`.
  async function configured(server, tools) {
    const connection = await connect(server, tools);
    await connection.talk.until("session.updated");
    const { session } = (await connection.talk.until("session.updated")).at(-1);
    return { ...connection, turnDetection: session.audio.input.turn_detection.type };
  }

  function speak(session, ...pcm) {
    for (const chunk of chunks(...pcm)) session.sendAudio(chunk.buffer);
  }

  async function say({ session, talk }, text) {
    session.sendMessage(text);
    return (await talk.until("response.done")).at(-1);
  }

  // What the history that the SDK keeps says of an item.
  const transcriptOf = (session, itemId) => session.history.find((item) => item.itemId === itemId).content[0].transcript;

  async function retrieved(talk, itemId) {
    const isIt = (event) => event.type === "conversation.item.retrieved" && event.item.id === itemId;
    while (!talk.events.some(isIt)) await talk.until("conversation.item.retrieved");
  }

  async function newSession() {
    const connection = await configured(servers.scripted);
    const turn = written(await say(connection, "Hello."));
    connection.session.close();
    return turn;
  }

  return {
    async conversation() {
      const { session, talk, turnDetection } = await configured(servers.local);
      const turns = [];
      for (const name of ["capital", "interrupt"]) {
        let bytes = 0;
        const count = ({ data }) => (bytes += data.byteLength);
        session.on("audio", count);
        speak(session, await recording(name), SILENCE);
        const events = await talk.until("response.done", "conversation.item.input_audio_transcription.completed");
        session.off("audio", count);
        const heard = events.find((event) => event.type.endsWith("transcription.completed")).item_id;
        await retrieved(talk, heard);
        const said = events.find((event) => event.type === "response.done").response.output[0].id;
        turns.push({ heard: transcriptOf(session, heard), said: transcriptOf(session, said), seconds: durationMs(bytes) / 1000 });
      }
      session.close();
      return { turns, turn_detection: turnDetection };
    },

    async tool_call() {
      const called = [];
      const weather = sdk.tool({
        name: "get_weather",
        description: "Get the weather in a city.",
        parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
        execute: async (args, _context, { toolCall }) => (called.push(toolCall), "sunny"),
      });
      const { session, talk } = await configured(servers.scripted, [weather]);
      speak(session, tone(WEATHER), SILENCE);
      await talk.until("response.done");
      const answer = (await talk.until("response.done")).at(-1).response.output[0].id;
      const said = transcriptOf(session, answer);
      session.close();
      return { name: called[0].name, arguments: called[0].arguments, said };
    },

    async barge_in() {
      const { session, talk } = await configured(servers.scripted);
      const interrupted = new Promise((resolve) => session.once("audio_interrupted", resolve));
      speak(session, tone(STORY), SILENCE);
      await talk.until("response.output_audio.delta");
      await new Promise((resolve) => setTimeout(resolve, HEARD_MS));
      speak(session, tone(REPEAT));
      await interrupted;
      const ending = await talk.until("response.done", "conversation.item.truncated");
      const { status, status_details, output } = ending.find((event) => event.type === "response.done").response;
      const { audio_end_ms, item_id } = ending.find((event) => event.type === "conversation.item.truncated");
      await retrieved(talk, item_id);
      const kept = transcriptOf(session, item_id);
      speak(session, SILENCE);
      const said = written((await talk.until("response.done")).at(-1));
      session.close();
      return { status, reason: status_details.reason, audio_end_ms, said, kept, interrupted: item_id === output[0].id };
    },

    async errors() {
      const connection = await configured(servers.scripted);
      const { session, talk, surfaced } = connection;
      talk.send({ type: "session.update", session: { type: "realtime", audio: { input: { turn_detection: null } } } });
      await talk.until("session.updated");
      const answer = (await say(connection, "Hello.")).response.output[0].id;
      const turn = async (text) => written(await say(connection, text));
      const provoked = await provokeAll(await provocations(), { talk, surfaced, answer, say: turn });
      session.close();
      return { provoked };
    },

    async session_ends() {
      const ended = {};
      const expiring = await connect(servers.expiring);
      ended.session_expired = codeOf((await expiring.talk.rest()).at(-1));
      const deaf = await configured(servers.deaf);
      speak(deaf.session, tone(HELLO), SILENCE);
      ended.server_error = codeOf((await deaf.talk.rest()).at(-1));
      return { ended, turn: await newSession() };
    },

    async refused_upgrades() {
      const refused = {};
      for (const [code, server] of Object.entries(refusedUpgrades(servers))) {
        refused[code] = await connect(server).then(() => "connected", (error) => error.message ?? error.type);
      }
      return { refused, turn: await newSession() };
    },
  };
}
