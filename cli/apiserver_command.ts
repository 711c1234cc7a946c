import type { Command } from "./command.ts";
import { serverIdentity } from "./server_identity.ts";
import {
  aborted,
  portOf,
  serveOn,
  textOf,
  writeSecretFile,
} from "./serving.ts";

/** `coracle apiserver`: the embedded API server alone, for any client. */
export const apiserverCommand: Command = {
  name: "apiserver",
  operands: "",
  count: [0, 0],
  summary: "serve the embedded API server for kubectl and other clients",
  description:
    "Serves the embedded API server on a port of this machine until Ctrl-C. The\n" +
    "kubeconfig is written once it serves; it carries server, CA and token, and\n" +
    "only you may read it. Without --data everything is forgotten at the end.",
  flags: [
    {
      name: "port",
      value: "N",
      required: true,
      help: "where to serve; 0 takes any port that is free",
    },
    {
      name: "kubeconfig",
      value: "FILE",
      required: true,
      help: "where to write the kubeconfig",
    },
    {
      name: "data",
      value: "FILE",
      help: "keep the objects, and who the server is, over restarts",
    },
    {
      name: "simulate",
      help: "pretend that Deployments become ready; nothing runs pods",
    },
  ],
  async run({ flags, terminal }) {
    const port = portOf(flags, "apiserver", 0);
    const kubeconfig = textOf(flags, "kubeconfig") ?? "";
    const interrupts = terminal.interrupts();
    const { ApiServer } = await import("../apiserver/server.ts");
    const data = textOf(flags, "data");
    const identity = await serverIdentity(data);
    const server = await serveOn(port, () =>
      ApiServer.start({
        ...identity,
        port,
        data,
        simulate: flags["simulate"] === true,
      }));
    try {
      await writeSecretFile(kubeconfig, server.kubeconfig);
      terminal.say(
        `Serving on ${server.url}\n\n  kubectl --kubeconfig ${kubeconfig} api-resources\n\n`,
      );
      await aborted(interrupts);
    } finally {
      await server.stop();
    }
    return 0;
  },
};
