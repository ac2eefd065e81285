// Brings about every error that leaves a session alive.

import { codeOf } from "./talk.mjs";

const ANSWER = "$answer";
let sent = 0;

// `say` holds a turn in writing and returns its answer; `surfaced` are the codes that the client told its user of so far.
export async function provokeAll(provocations, { talk, say, surfaced, answer }) {
  const seen = {};
  for (const provocation of provocations) {
    const before = surfaced.length;
    const came = await provoke(talk, provocation, answer);
    seen[provocation.name] = { ...came, surfaced: surfaced.slice(before), turn: await say("Hello.") };
  }
  return seen;
}

async function provoke(talk, provocation, answer) {
  const ids = [];
  const first = talk.events.length;
  for (const event of provocation.send) {
    const known = "type" in event ? { event_id: `event_${++sent}`, ...event } : { ...event };
    if (known.item_id === ANSWER) known.item_id = answer;
    ids.push(known.event_id);
    talk.send(known);
  }
  const came = (await talk.until(provocation.in)).at(-1);
  await settle(talk);
  provocation.restore.forEach((event) => talk.send(event));
  const errors = talk.events.slice(first).filter((event) => event.type === "error").length;
  return { code: codeOf(came), names_event: ids.includes(came.error?.event_id), errors };
}

// What servers refuse before a session, by the code of the refusal; the deaf model is not ready once its detector has failed.
export const refusedUpgrades = ({ scripted, deaf }) => ({
  invalid_api_key: { ...scripted, key: `${scripted.key}-wrong` },
  model_not_found: { ...scripted, model: "unknown" },
  model_not_ready: deaf,
});

// Cancels every response that still runs.
async function settle(talk) {
  const ids = (kind) => talk.events.filter((event) => event.type === kind).map((event) => event.response.id);
  const done = new Set(ids("response.done"));
  for (const response_id of ids("response.created").filter((id) => !done.has(id))) {
    talk.send({ type: "response.cancel", response_id });
    await talk.until("response.done");
  }
}
