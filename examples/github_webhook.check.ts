/** Options of `coracle check examples/github_webhook.ts`. */
import type { CheckOptions } from "@coracle/dev";
import process from "node:process";

process.env["WEBHOOK_SECRET"] = "secret";

// Nothing is pushed: what happens without GitHub is checked.
const options: Partial<CheckOptions> = { ignore: [] };

export default options;
