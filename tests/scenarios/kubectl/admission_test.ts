/**
 * What an operator's handlers, policies and conversions do to the commands of a user,
 * by a listener with certificates of its own.
 */
import assert from "node:assert/strict";
import { request } from "node:https";
import { z } from "zod";
import {
  allow,
  Client,
  deny,
  loadConfig,
  Operator,
  silentLogger,
  type Transport,
  type WebhookServerOptions,
} from "@coracle/operator/core";
import {
  defineKind,
  mutatingPolicy,
  validatingPolicy,
} from "@coracle/operator/crd";
import { ConfigMap } from "@coracle/operator/kinds";
import { showsCertificates } from "../../../core/admission/webhook_listener.ts";
import { clientSettings } from "../../../core/client/client_options.ts";
import { openConnection } from "../../../core/client/connection.ts";
import { killGroup, startCommand } from "../../support/child_process.ts";
import type { Kubectl } from "../../support/kubectl.ts";
import { kubectlTest } from "../../support/kubectl_test_case.ts";
import { until } from "../../support/until.ts";

/** Runs an operator beside the API server, and takes away what it has made. */
async function withOperator(
  kubectl: Kubectl,
  { register, webhooks, transport = (given) => given }: {
    readonly register: (operator: Operator) => void;
    readonly webhooks?: Partial<WebhookServerOptions>;
    readonly transport?: (given: Transport) => Transport;
  },
  body: (operator: Operator) => Promise<void>,
): Promise<void> {
  const { kubeconfig, namespace } = kubectl;
  const config = await loadConfig({ kubeconfig });
  const client = new Client({
    transport: transport(openConnection(config, clientSettings(config, {}))),
    namespace,
  });
  const operator = new Operator({
    client,
    namespaces: [namespace],
    logger: silentLogger,
    webhooks: {
      port: 0,
      host: "127.0.0.1",
      url: "https://127.0.0.1:0",
      name: namespace,
      ...webhooks,
    },
  });
  register(operator);
  await operator.start();
  try {
    await body(operator);
  } finally {
    await operator.removeWebhooks();
    await operator.stop();
    const crds = await kubectl.run("get crd -o name");
    const own = crds.split("\n").filter((name) => name.includes(namespace));
    if (own.length > 0) await kubectl.run("delete", ...own);
    await client.close();
  }
}

kubectlTest(
  "kubectl is denied, warned and defaulted by handlers, also in dry runs",
  async (kubectl) => {
    const group = `${kubectl.namespace}.example.com`;
    // With its group: other tests on the cluster have Nightlies, too.
    const nightlies = `nightlies.${group}`;
    const Nightly = defineKind({
      group,
      version: "v1",
      kind: "Nightly",
      plural: "nightlies",
      spec: z.object({
        schedule: z.string(),
        timeZone: z.string().optional(),
        size: z.int().optional(),
      }),
    });
    const seen: string[] = [];
    const manifest = (name: string, spec: string) =>
      `apiVersion: ${group}/v1\nkind: Nightly\nmetadata: { name: ${name} }\nspec: ${spec}\n`;
    const register = (operator: Operator) =>
      void operator.register(Nightly, { reconcile() {} }, {
        install: true,
        admission: {
          failurePolicy: "Fail",
          operations: ["CREATE", "UPDATE", "DELETE"],
          default(nightly) {
            nightly.spec.timeZone ??= "UTC";
            return nightly;
          },
          validate({ metadata: { name, labels }, spec }, ctx) {
            const { operation, old, dryRun, user } = ctx;
            seen.push(`${operation} ${name}${dryRun ? " dry" : ""}`);
            assert(user.groups.includes("system:masters"), `${user.groups}`);
            if (operation === "DELETE") {
              return labels?.["keep"] ? deny("it is kept") : undefined;
            }
            if (spec.schedule.split(" ").length !== 5) {
              return deny("must be a cron expression", {
                field: "spec.schedule",
              });
            }
            if (old && old.spec.timeZone !== spec.timeZone) {
              return deny("must stay as it is", { field: "spec.timeZone" });
            }
            return spec.size === undefined
              ? undefined
              : allow({ warnings: ["spec.size is deprecated"] });
          },
        },
      });
    await withOperator(kubectl, { register }, async (operator) => {
      const good = `{ schedule: "0 3 * * *" }`;
      const wrong = manifest("b", "{ schedule: at night }");
      // A server takes a moment to read new configurations.
      await until(
        "both handlers are called",
        () =>
          kubectl.result("create --dry-run=server -f -", [], wrong).then((
            { code },
          ) => code === 1 && seen.length > 0),
      );
      assert.match(
        await kubectl.feed(manifest("a", good), "apply -f -"),
        /nightly\S*\/a created/,
      );
      const zone = `get ${nightlies} a -o jsonpath={.spec.timeZone}`;
      assert.equal(await kubectl.run(zone), "UTC");

      const webhook = `admission webhook "validate.nightlies.${group}"`;
      assert.equal(
        await kubectl.feedFails(wrong, "create -f -"),
        `The Nightly "b" is invalid: spec.schedule: must be a cron expression\n`,
      );
      const change = ["--type=merge", "-p", '{"spec":{"timeZone":"CET"}}'];
      assert.equal(
        await kubectl.fails(`patch ${nightlies} a`, ...change),
        `The Nightly "a" is invalid: spec.timeZone: must stay as it is\n`,
      );
      await kubectl.run(`label ${nightlies} a keep=true`);
      assert.equal(
        await kubectl.fails(`delete ${nightlies} a`),
        `Error from server (Forbidden): ${webhook} denied the request: it is kept\n`,
      );
      await kubectl.run(`label ${nightlies} a keep-`);

      const warned = await kubectl.result(
        "apply -f -",
        [],
        manifest("a", `{ schedule: "0 4 * * *", size: 3 }`),
      );
      assert.equal(warned.stderr, "Warning: spec.size is deprecated\n");
      assert.match(warned.stdout, /configured/);

      seen.length = 0;
      assert.match(
        await kubectl.feed(manifest("c", good), "apply --dry-run=server -f -"),
        /\/c created \(server dry run\)/,
      );
      const { code, stdout } = await kubectl.result(
        "diff -f -",
        [],
        manifest("d", good),
      );
      assert.equal(code, 1);
      assert.match(stdout, /^\+ {2}timeZone: UTC$/m);
      assert.deepEqual(seen, ["CREATE c dry", "CREATE d dry"]);
      assert.match(await kubectl.fails(`get ${nightlies} c`), /NotFound/);

      await operator.removeWebhooks();
      for (const kind of ["validating", "mutating"]) {
        const get = `get ${kind}webhookconfigurations ${kubectl.namespace}`;
        assert.match(await kubectl.fails(get), /NotFound/);
      }
      assert.match(
        await kubectl.fails(`get secret ${kubectl.namespace}`),
        /NotFound/,
      );
      await until(
        "nothing is denied any more",
        () =>
          kubectl.result("create --dry-run=server -f -", [], wrong).then((
            { code },
          ) => code === 0),
      );
    });
  },
);

/** Pools of a group of the test, in two versions. */
function poolOf(group: string) {
  return defineKind({
    group,
    version: "v1",
    kind: "Pool",
    spec: z.object({ min: z.int(), max: z.int() }),
    versions: [{
      name: "v1beta1",
      spec: z.object({ size: z.string(), note: z.string().optional() }),
      up: ({ spec: { size } }) => ({
        spec: { min: Number(size), max: Number(size) },
      }),
      down: ({ spec: { min } }) => ({ spec: { size: String(min) } }),
    }],
  });
}

const pool = (group: string, version: string, spec: string) =>
  `apiVersion: ${group}/${version}\nkind: Pool\nmetadata: { name: a }\nspec: ${spec}\n`;

kubectlTest(
  "kubectl reads, writes and watches each version that an operator converts",
  async (kubectl) => {
    const group = `${kubectl.namespace}.example.com`;
    const register = (operator: Operator) =>
      void operator.register(poolOf(group), { reconcile() {} }, {
        install: true,
      });
    await withOperator(kubectl, { register }, async () => {
      const [old, now] = [`pools.v1beta1.${group}`, `pools.v1.${group}`];
      await kubectl.feed(
        pool(group, "v1beta1", `{ size: "2", note: mine }`),
        "apply --server-side --field-manager=old -f -",
      );
      const spec = async (resource: string) =>
        JSON.parse(
          await kubectl.run(`get ${resource} a -o jsonpath={.spec}`),
        );
      assert.deepEqual(await spec(now), { min: 2, max: 2 });
      assert.deepEqual(await spec(old), { size: "2", note: "mine" });
      assert.equal(
        await kubectl.run(`get ${old} -o jsonpath={.items[*].spec.size}`),
        "2",
      );
      const child = startCommand(
        kubectl.command(
          `get ${old} --watch -o jsonpath={.apiVersion},{.spec.size}{"\\n"}`,
        ),
      );
      try {
        let printed = "";
        child.stdout?.setEncoding("utf8").on("data", (text) => printed += text);
        await until(
          "the first state is printed",
          () => printed === `${group}/v1beta1,2\n`,
        );
        // A field of the other version, and one that both have.
        assert.match(
          await kubectl.feedFails(
            pool(group, "v1", `{ min: 3, max: 5 }`),
            "apply --server-side --field-manager=now -f -",
          ),
          /conflict with "old": \.spec\.size\n/,
        );
        await kubectl.feed(
          pool(group, "v1", `{ min: 3, max: 5 }`),
          "apply --server-side --force-conflicts --field-manager=now -f -",
        );
        await until(
          "the change is printed in the other version",
          () => printed.endsWith(`${group}/v1beta1,3\n`),
        );
      } finally {
        killGroup(child);
      }
      assert.deepEqual(await spec(now), { min: 3, max: 5 });
      assert.deepEqual(await spec(old), { size: "3", note: "mine" });
      const { metadata } = JSON.parse(
        await kubectl.run(`get ${now} a -o json --show-managed-fields`),
      );
      const fields = (name: string) =>
        metadata.managedFields.filter((
          { manager }: { manager: string },
        ) => manager === name).map((
          { apiVersion, operation, fieldsV1 }: Record<string, unknown>,
        ) => [apiVersion, operation, fieldsV1]);
      assert.deepEqual(fields("now"), [[
        `${group}/v1`,
        "Apply",
        { "f:spec": { "f:max": {}, "f:min": {} } },
      ]]);
      assert.deepEqual(fields("old"), [[
        `${group}/v1beta1`,
        "Apply",
        { "f:spec": { "f:note": {} } },
      ]]);
    });
  },
);

kubectlTest(
  "kubectl is refused by policies, and by handlers where there are none",
  async (kubectl) => {
    const { namespace } = kubectl;
    const name = `${namespace}.example.com`;
    const limits = validatingPolicy(ConfigMap, {
      name: `limits.${name}`,
      namespaceSelector: `kubernetes.io/metadata.name=${namespace}`,
      validations: [{
        expression: "!has(object.data.limit) || int(object.data.limit) < 9",
        message: "too large for the policy",
      }],
    });
    const owner = mutatingPolicy(ConfigMap, {
      name: `owner.${name}`,
      namespaceSelector: `kubernetes.io/metadata.name=${namespace}`,
      matchConditions: { unset: "!has(object.data.owner)" },
      mutations: [{ apply: "Object{data: {'owner': 'policy'}}" }],
    });
    const register = (operator: Operator) => {
      operator.admit(limits, {
        validate: ({ data = {} }) =>
          Number(data["limit"] ?? 0) < 9
            ? undefined
            : deny("too large for the handler"),
      });
      operator.admit(owner, {
        default: (map) => ({ ...map, data: { owner: "handler", ...map.data } }),
      });
    };
    const create = (limit: number, more = "") =>
      kubectl.result(
        `create configmap a --from-literal=limit=${limit} --dry-run=server ${more}`
          .trim(),
      );
    const output = "-o jsonpath={.data.owner}";
    await withOperator(kubectl, { register }, async (operator) => {
      // A server takes a moment to enforce a new policy.
      await until(
        "the policies hold",
        async () =>
          (await create(9)).code === 1 &&
          (await create(1, output)).stdout === "policy",
      );
      assert.equal(
        (await create(9)).stderr,
        `error: failed to create configmap: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'limits.${name}' with binding 'limits.${name}' denied request: too large for the policy\n`,
      );
      assert.deepEqual(
        operator.admission().map(({ place }) => place),
        ["policy", "policy"],
      );
    });
    /** Hides the policies, as Kubernetes before 1.30. */
    const transport = (given: Transport): Transport => ({
      send: (request) =>
        given.send({
          ...request,
          path: request.path.replace(/admissionpolic(?:y|ies)/, "unknown"),
        }),
      close: () => given.close(),
    });
    const deps = { register, transport };
    await withOperator(kubectl, deps, async (operator) => {
      await until(
        "the handlers stand in",
        async () => (await create(1, output)).stdout === "handler",
      );
      assert.equal(
        (await create(9)).stderr,
        `error: failed to create configmap: admission webhook "validate.configmaps.core.k8s.io" denied the request: too large for the handler\n`,
      );
      assert.deepEqual(
        operator.admission().map(({ place }) => place),
        ["webhook", "webhook"],
      );
    });
  },
  {
    needs: [
      "/apis/admissionregistration.k8s.io/v1",
      "mutatingadmissionpolicies",
    ],
  },
);

kubectlTest(
  "Handlers behind client certificates answer the API server and nobody else",
  async (kubectl, { callers: caFile }) => {
    if (caFile === undefined) return;
    const group = `${kubectl.namespace}.example.com`;
    const register = (operator: Operator) =>
      void operator.register(poolOf(group), { reconcile() {} }, {
        install: true,
        admission: {
          failurePolicy: "Fail",
          validate: ({ spec: { min, max } }) =>
            min > max ? deny("min is above max") : undefined,
        },
      });
    const callers = showsCertificates()
      ? { caFile, names: ["kube-apiserver"] }
      : { caFile };
    const deps = { register, webhooks: { callers } };
    await withOperator(kubectl, deps, async (operator) => {
      const wrong = pool(group, "v1", "{ min: 5, max: 1 }");
      await until("the handler denies", async () => {
        const { stderr } = await kubectl.result(
          "create --dry-run=server -f -",
          [],
          wrong,
        );
        return stderr.endsWith("denied the request: min is above max\n");
      });
      // Conversions come without a certificate.
      await kubectl.feed(
        pool(group, "v1beta1", `{ size: "2" }`),
        "create -f -",
      );
      const { port } = operator.health().webhooks ?? {};
      const status = await new Promise((resolve, reject) =>
        request({
          port,
          host: "127.0.0.1",
          method: "POST",
          path: `/validate/${group}/v1/pool`,
          headers: { "content-type": "application/json" },
          rejectUnauthorized: false,
        }, ({ statusCode }) => resolve(statusCode)).on("error", reject).end(
          "{}",
        )
      );
      assert.equal(status, 401);
    });
  },
);
