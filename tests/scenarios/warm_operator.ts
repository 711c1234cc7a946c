/**
 * Operator with snapshots in the folder SNAPSHOTS, which prints its lists and runs.
 */
import process from "node:process";
import { Client, loadConfig, type Transport } from "@coracle/operator/client";
import { Operator } from "@coracle/operator/core";
import { ClusterTransport } from "../../core/client/transport/cluster_transport.ts";
import { credentialSource } from "../../core/config/cluster_config.ts";
import { Gadget } from "../support/operator_fixture.ts";

const { SNAPSHOTS = "" } = process.env;
const say = (text: string) => process.stdout.write(`${text}\n`);

const config = await loadConfig();
const credentials = credentialSource(config.credentials);
const server = new ClusterTransport(config, credentials);
/** Whether a request reads a whole collection, as a page or as a stream. */
const isList = (path: string) =>
  /\/gadgets(\?|$)/.test(path) &&
  (path.includes("watch=true")
    ? path.includes("sendInitialEvents=true")
    : !/[?&]limit=1(&|$)/.test(path));
const transport: Transport = {
  async send(request) {
    if (request.method === "GET" && isList(request.path)) say("lists");
    const { token } = await credentials.current();
    const authorization = token === undefined
      ? undefined
      : { authorization: `Bearer ${token}` };
    return await server.send({
      ...request,
      headers: { ...request.headers, ...authorization },
    });
  },
  close: () => server.close(),
};

const operator = new Operator({
  client: new Client({ transport }),
  namespaces: ["default"],
  cache: { snapshot: { path: SNAPSHOTS, every: "1s" } },
});
operator.register(Gadget, {
  reconcile({ metadata, spec }) {
    say(`runs ${metadata.name} ${spec.value}`);
  },
});
await operator.run();
