import type { Command } from "./command.ts";
import { DATA_FLAG, readUsers, startServer } from "./embedded_server.ts";
import type { KubernetesVersion } from "../apiserver/kubernetes_release.ts";
import { shellText } from "../testing/shell_text.ts";
import type { LocalServer } from "./window/local_server.ts";
import { aborted, listOf, portOf, textOf, writeSecretFile } from "./serving.ts";

export const apiserverCommand: Command = {
  name: "apiserver",
  operands: "",
  count: [0, 0],
  summary: "serve the embedded API server for kubectl and other clients",
  description:
    "Serves the embedded API server on a local port until Ctrl-C. The kubeconfig is\n" +
    "written when the server is ready; it has the server's URL, CA and token, and\n" +
    "only you can read it. Without --data all objects are lost at the end.",
  required: ["port", "kubeconfig"],
  flags: {
    "port N": "port to serve on; 0 selects any free port",
    "kubeconfig FILE": "kubeconfig file to write",
    "control FILE":
      "file to write with the URL of requests that inject faults and move the clock",
    ...DATA_FLAG,
    "token-auth-file FILE":
      'CSV with users, as in kube-apiserver: token,user,uid,"group1,group2"',
    "controllers NAME…":
      "controllers to run, as in kube-controller-manager; all by default",
    "kubernetes-version N":
      "minor version of Kubernetes whose API is served, from 1.34 to 1.37; 1.37 by default",
    "simulate": "run pods on a simulated node, without containers",
  },
  async run({ flags, terminal }) {
    const kubeconfig = textOf(flags, "kubeconfig") ?? "";
    const tokens = textOf(flags, "token-auth-file");
    const control = textOf(flags, "control");
    const interrupts = terminal.interrupts();
    const clock = control === undefined
      ? undefined
      : new (await import("../testing/running_clock.ts")).RunningClock();
    const server = await startServer({
      port: portOf(flags),
      clock,
      data: textOf(flags, "data"),
      users: tokens === undefined ? undefined : readUsers(tokens),
      controllers: flags["controllers"] === undefined
        ? ["*"]
        : listOf(flags, "controllers"),
      simulate: flags["simulate"] === true,
      version: textOf(flags, "kubernetes-version") as
        | KubernetesVersion
        | undefined,
    });
    let controls: LocalServer | undefined;
    try {
      if (clock !== undefined && control !== undefined) {
        const { serveControl } = await import("./server_control.ts");
        const { faults } = server;
        controls = await serveControl({ faults, clock }, control);
      }
      await writeSecretFile(kubeconfig, server.kubeconfig);
      terminal.out(
        `Serving on ${server.url}\n\n  kubectl --kubeconfig ${
          shellText(kubeconfig)
        } api-resources\n\n`,
      );
      await aborted(interrupts);
    } finally {
      await controls?.close();
      await server.stop();
    }
    return 0;
  },
};
