// examples/browser/index.html in Chromium; its microphone is a file.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { chromium } from "playwright-core";

import { Talk, within } from "./talk.mjs";

const { CHROMIUM = "/usr/bin/chromium", HOST, KEY, MICROPHONE, PAGE, RESPONSES } = process.env;
const WAIT_MS = 60_000;

const pages = createServer((_, response) => response.setHeader("Content-Type", "text/html").end(readFileSync(PAGE)));
await new Promise((resolve) => pages.listen(0, "127.0.0.1", resolve));
const microphone = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"];
microphone.push(`--use-file-for-fake-audio-capture=${MICROPHONE}%noloop`);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", ...microphone] });
const page = await browser.newPage();
const talk = new Talk();
const truncations = [];
page.on("websocket", (socket) => {
  socket.on("framereceived", ({ payload }) => talk.add(JSON.parse(payload)));
  socket.on("framesent", ({ payload }) => payload.includes("conversation.item.truncate") && truncations.push(JSON.parse(payload)));
  socket.on("close", () => talk.end());
});

await page.goto(`http://127.0.0.1:${pages.address().port}/`);
await page.fill("#url", HOST);
await page.fill("#key", KEY);
await page.click("button");
for (let n = 0; n < RESPONSES; n++) await within(WAIT_MS, talk.until("response.done"), () => "the page talked");
const said = await page.$$eval("#talk li", (lines) => lines.map((line) => [line.className, line.textContent]));
console.log(JSON.stringify({ said, truncated: truncations.map((event) => event.audio_end_ms) }));
process.exit(0);
