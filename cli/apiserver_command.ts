import type { Command } from "./command.ts";
import { serverIdentity } from "./server_identity.ts";
import {
  aborted,
  portOf,
  serveOn,
  textOf,
  writeSecretFile,
} from "./serving.ts";

export const apiserverCommand: Command = {
  name: "apiserver",
  operands: "",
  count: [0, 0],
  summary: "serve the embedded API server for kubectl and other clients",
  description:
    "Serves the embedded API server on a local port until Ctrl-C. The kubeconfig is\n" +
    "written when the server is ready; it has the server's URL, CA and token, and\n" +
    "only you can read it. Without --data all objects are lost at the end.",
  flags: [
    {
      name: "port",
      value: "N",
      required: true,
      help: "port to serve on; 0 selects any free port",
    },
    {
      name: "kubeconfig",
      value: "FILE",
      required: true,
      help: "kubeconfig file to write",
    },
    {
      name: "data",
      value: "FILE",
      help:
        "file that keeps the objects and the server's identity over restarts",
    },
    {
      name: "simulate",
      help: "make Deployments become ready, without running pods",
    },
  ],
  async run({ flags, terminal }) {
    const port = portOf(flags);
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
      terminal.out(
        `Serving on ${server.url}\n\n  kubectl --kubeconfig ${kubeconfig} api-resources\n\n`,
      );
      await aborted(interrupts);
    } finally {
      await server.stop();
    }
    return 0;
  },
};
