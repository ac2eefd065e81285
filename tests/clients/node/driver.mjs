// Runs a client's checks, or those that the command line names, and prints a JSON line of what each saw, or of how it failed.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { samplesOf } from "./speech.mjs";
import { within } from "./talk.mjs";

const CHECK_MS = 60_000;
const env = process.env;

export const servers = {
  local: { url: env.LOCAL_URL, model: env.LOCAL_MODEL, key: "none" },
  scripted: { url: env.SCRIPTED_URL, model: env.SCRIPTED_MODEL, key: env.KEY },
  expiring: { url: env.EXPIRING_URL, model: env.SCRIPTED_MODEL, key: env.KEY },
  deaf: { url: env.SCRIPTED_URL, model: env.DEAF_MODEL, key: env.KEY },
};

export const provocations = () => JSON.parse(readFileSync(env.PROVOCATIONS));

export const recording = (name) => samplesOf(new Uint8Array(readFileSync(join(env.AUDIO, `${name}.wav`))));

const versionOf = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

export async function runChecks(client, checks) {
  const escaped = [];
  process.on("uncaughtException", (error) => escaped.push(error));
  process.on("unhandledRejection", (error) => escaped.push(error));
  const report = (check, fields) => console.log(JSON.stringify({ check, ...fields }));
  report("version", { version: versionOf(client) });
  const wanted = process.argv.slice(2);
  for (const [name, check] of Object.entries(checks)) {
    if (wanted.length && !wanted.includes(name)) continue;
    try {
      const seen = await within(CHECK_MS, check(), () => "the check went on");
      if (escaped.length) throw escaped[0];
      report(name, seen);
    } catch (error) {
      report(name, { failure: String(error?.stack ?? error) });
    }
  }
  process.exit(0);
}
