/**
 * Operator that forgets `await` before a function with a write and before a
 * request of its client, or before a function of its own that fails. It ends well
 * if it still reconciles after that.
 */
import process from "node:process";
import type { Context } from "@coracle/operator/core";
import { ApiServer } from "../../dev/apiserver/server.ts";
import { Client } from "../../core/client/client.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import { jsonLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";

const wrong = { metadata: { namespace: "default", name: "Refused" } };
const FORGOTTEN: Record<string, (ctx: Context<ConfigMap>) => void> = {
  requests(ctx) {
    (async () => await ctx.apply(ConfigMap, wrong))();
    ctx.client.create(ConfigMap, wrong);
  },
  own: () => void Promise.reject(new Error("Cannot do my own work")),
};
const [forgotten] = process.argv.slice(2);

const server = await ApiServer.start({ port: false });
const client = new Client({ transport: server.transport });
const failed = Promise.withResolvers<void>();
let failures = 0;
const logger = jsonLogger({
  write(line) {
    process.stderr.write(`${line}\n`);
    if (line.includes("nobody waits for") && ++failures === 2) failed.resolve();
  },
});
const operator = new Operator({ client, logger, namespaces: ["default"] });
operator.register(ConfigMap, {
  async reconcile({ metadata }, ctx) {
    if (metadata.name === "first") FORGOTTEN[forgotten ?? ""]?.(ctx);
    if (metadata.name !== "second") return;
    process.stdout.write("still reconciles\n");
    setTimeout(() => operator.stop());
    await Promise.resolve();
  },
});
const ran = operator.run();
const create = (name: string) =>
  client.create(ConfigMap, { metadata: { namespace: "default", name } });
await create("first");
await failed.promise;
await create("second");
await ran;
await server.stop();
