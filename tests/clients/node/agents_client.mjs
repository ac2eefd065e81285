// @openai/agents-realtime in Node.

import * as sdk from "@openai/agents-realtime";

import { agentsChecks } from "./agents_checks.mjs";
import { provocations, recording, runChecks, servers } from "./driver.mjs";

const open = () => new sdk.OpenAIRealtimeWebSocket();
await runChecks("@openai/agents-realtime", agentsChecks({ sdk, open, servers, provocations, recording }));
