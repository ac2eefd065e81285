// @openai/agents-realtime as a web page loads it, in Chromium: its key is a client secret, and travels as a subprotocol.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import OpenAI from "openai";
import { chromium } from "playwright-core";

import { recording, runChecks, servers } from "./driver.mjs";
import { base64 } from "./speech.mjs";

const CHECKS = ["conversation", "tool_call", "barge_in", "errors", "session_ends", "refused_upgrades"];
const RECORDINGS = ["capital", "interrupt"];
const BUNDLE = "node_modules/@openai/agents-realtime/dist/bundle/";
const TYPES = { html: "text/html", mjs: "text/javascript", json: "application/json" };

function fileOf(path) {
  if (path === "/page.html") return "<!doctype html><title>A page with a client</title>";
  if (path === "/provocations.json") return readFileSync(process.env.PROVOCATIONS);
  return readFileSync(new URL(path.replace(/^\/bundle\//, BUNDLE).replace(/^\//, ""), import.meta.url));
}

const pages = createServer(({ url }, response) => {
  try {
    response.setHeader("Content-Type", TYPES[url.split(".").at(-1)]).end(fileOf(url));
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => pages.listen(0, "127.0.0.1", resolve));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

async function withSecret({ url, model, key }) {
  const client = new OpenAI({ apiKey: key, baseURL: `${url}/v1` });
  const { value } = await client.realtime.clientSecrets.create({ session: { type: "realtime", model } });
  return { url, model, key: value };
}

const secrets = {};
for (const [name, server] of Object.entries(servers)) secrets[name] = await withSecret(server);

// Runs in the page.
async function check({ name, servers, audio }) {
  const sdk = await import("/bundle/openai-realtime-agents.mjs");
  const { agentsChecks } = await import("/agents_checks.mjs");
  const provocations = async () => (await fetch("/provocations.json")).json();
  const open = () => new sdk.OpenAIRealtimeWebSocket();
  const recording = (of) => Uint8Array.from(atob(audio[of]), (letter) => letter.charCodeAt(0));
  return agentsChecks({ sdk, open, servers, provocations, recording })[name]();
}

async function inPage(name) {
  const page = await browser.newPage();
  const escaped = [];
  page.on("pageerror", (error) => escaped.push(error));
  await page.goto(`http://127.0.0.1:${pages.address().port}/page.html`);
  const audio = Object.fromEntries(RECORDINGS.map((of) => [of, base64(recording(of))]));
  const seen = await page.evaluate(check, { name, servers: secrets, audio });
  await page.close();
  if (escaped.length) throw escaped[0];
  return seen;
}

await runChecks("@openai/agents-realtime", Object.fromEntries(CHECKS.map((name) => [name, () => inPage(name)])));
