import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { Operator } from "@coracle/operator";
import { denoPermissions } from "../../../dev/cli/deno_permissions.ts";
import type { OperatorDescription } from "../../../dev/cli/operator_description.ts";
import { PROJECT, runCommand } from "../../support/child_process.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

const API_SERVER_PORT = "kubernetes.default.svc:443";

/** Facts about an operator with probes and secure metrics. */
function describedOperator(
  host = "127.0.0.1",
  port = 0,
  secure = true,
  programs: readonly string[] = [],
): OperatorDescription {
  return {
    controllers: [],
    settings: {
      namespaces: ["default"],
      programs,
      probes: {
        port,
        host,
        debug: false,
        metrics: { secure, port: 0, host, certificates: "self" },
      },
    },
  };
}

/** Operator whose first run writes an Event. */
const OPERATOR = `
import { Operator } from "${join(PROJECT, "mod.ts")}";
import { fromCommand } from "${join(PROJECT, "workflows/mod.ts")}";
const kind = (kind, plural) => ({ group: "", version: "v1", kind, plural, scope: "Namespaced" });
const PRINTS = "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: { name: %s }' $PRINTED";
const operator = new Operator({
  namespaces: ["default"],
  leaderElection: { name: "permissions" },
  programs: ["sh"],
  probes: { port: 0, host: "127.0.0.1", metrics: { secure: true, port: 0, host: "127.0.0.1" } },
});
operator.register(kind("ConfigMap", "configmaps"), {
  async reconcile(_object, ctx) {
    ctx.events.normal("Seen", "It was seen");
    const [object] = await fromCommand(["sh", "-c", PRINTS]);
    if (object.metadata.name !== "printed") throw new Error("Nothing printed");
    await fromCommand(["cat"]).catch(({ message }) => console.log(message));
    await ctx.apply(kind("Secret", "secrets"), { metadata: { name: "seen" } });
    console.log("reconciled");
    setTimeout(() => void operator.stop());
  },
});
await operator.start();
`;

test("An operator on Deno runs with the permissions of its manifests alone", async () => {
  const folder = temporaryFolder();
  const server = await ApiServer.start({ port: 0 });
  try {
    const kubeconfig = writeText(folder, "kubeconfig", server.kubeconfig);
    const program = writeText(folder, "operator.mjs", OPERATOR);
    const described = describedOperator("127.0.0.1", 0, true, ["sh"]);
    // The kubeconfig stands for the service account of a pod.
    const flags = denoPermissions([described]).map((flag) =>
      flag.replace(API_SERVER_PORT, new URL(server.url).host)
        .replace("--allow-read=", `--allow-read=${kubeconfig},`)
    );
    const run = (permissions: readonly string[]) =>
      runCommand([
        "deno",
        ...["run", "--no-prompt", "--no-check", "--no-remote"],
        ...["--conditions=@coracle/source", "--config", "deno.json"],
        ...permissions,
        program,
      ], {
        env: {
          KUBECONFIG: kubeconfig,
          DENO_NO_UPDATE_CHECK: "1",
          PRINTED: "printed",
        },
      });
    const { code, stdout, stderr } = await run(flags);
    assert.deepEqual([code, /^reconciled$/m.test(stdout)], [0, true], stderr);
    assert.doesNotMatch(stderr, /NotCapable/);
    assert.match(
      stdout,
      /^Cannot run "cat": it needs the permissions --allow-run with its name/m,
    );
    const hostless = await run(
      flags.map((flag) => flag.replace("hostname,", "")),
    );
    assert.match(hostless.stderr, /NotCapable: .*hostname/);
    const dockerfile = readFileSync(
      join(PROJECT, "packages/create-operator/template/deno/Dockerfile"),
      "utf8",
    );
    const [, command = "[]"] = /^CMD (.*)$/m.exec(dockerfile) ?? [];
    assert.deepEqual(
      JSON.parse(command).filter((word: string) => word.startsWith("--allow-"))
        .map((word: string) => word.replace("PORT,", "")),
      denoPermissions([describedOperator("0.0.0.0", 8080, false)]),
    );
  } finally {
    await server.stop();
  }
});

test("The permissions have addresses of IPv6 in brackets, and the file of runs", () => {
  const described = describedOperator("::", 8080);
  const record = { path: "/var/lib/operator/runs" };
  const flags = denoPermissions([
    { ...described, settings: { ...described.settings, record } },
  ]);
  const [net, read, write] = ["net", "read", "write"].map((name) =>
    flags.find((flag) => flag.startsWith(`--allow-${name}=`))?.split("=")[1]
  );
  assert.equal(net, `${API_SERVER_PORT},[::]:8080,[::]:0`);
  assert.ok(read?.split(",").includes(record.path));
  assert.equal(write, record.path);
});

test("Operator refuses programs with blanks or commas, and unknown certificates", () => {
  for (const program of ["", "a,b", "a b", "-a", "a;b", "a\nb"]) {
    assert.throws(
      () => new Operator({ programs: [program] }),
      /Cannot .*programs/,
      program,
    );
  }
  const programs = ["helm", "./bin/tool-2", "C:\\bin\\helm.exe"];
  assert.doesNotThrow(() => new Operator({ programs }));
  const service = { name: "a" };
  for (const certificates of ["cert", 1]) {
    assert.throws(
      () =>
        new Operator({
          webhooks: { service, certificates: certificates as "self" },
        }),
      /^TypeError: Cannot read the options of .*"certificates" must be "self", "cert-manager"/,
    );
    const metrics = { secure: true, certificates: certificates as "self" };
    assert.throws(
      () => new Operator({ probes: { port: 0, metrics } }),
      /^TypeError: Cannot read the options of .*"certificates" must be "self", or/,
    );
  }
});
