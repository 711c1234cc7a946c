import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type ApiServerOptions } from "@coracle/dev/apiserver";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { until } from "../../support/until.ts";
import { ApiSession, withSession } from "../support/api_session.ts";

// deno-lint-ignore no-explicit-any -- tests look at whatever is there
type Any = any;

const MAPS = "/api/v1/namespaces/default/configmaps";
const GROUP = "/apis/admissionregistration.k8s.io/v1";

const RULES = [{
  operations: ["*"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["configmaps"],
}];

/** Adds a configuration with one webhook, whose service is its short name. */
async function configure(
  session: ApiSession,
  kind: "Mutating" | "Validating",
  name: string,
  webhook: Record<string, unknown> = {},
): Promise<void> {
  await session.create(
    `${GROUP}/${kind.toLowerCase()}webhookconfigurations`,
    {
      metadata: { name },
      webhooks: [{
        name: `${name}.coracle.dev`,
        clientConfig: { service: { namespace: "ops", name, path: "/review" } },
        rules: RULES,
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        ...webhook,
      }],
    },
  );
}

function answer(review: Any, response: Record<string, unknown>) {
  const { apiVersion, kind, request: { uid } } = review;
  return { apiVersion, kind, response: { uid, allowed: true, ...response } };
}

function patchOf(operations: unknown[]) {
  return { patchType: "JSONPatch", patch: btoa(JSON.stringify(operations)) };
}

/** Handlers of the services `ops/NAME`, whose port is 443. */
function services(
  handlers: Record<string, (review: Any) => unknown>,
): Pick<ApiServerOptions, "services"> {
  return {
    services: Object.fromEntries(
      Object.entries(handlers).map((
        [name, handler],
      ) => [`ops/${name}`, handler]),
    ),
  };
}

const map = (name: string, data: Record<string, string> = {}) => ({
  metadata: { name },
  data,
});

test("A validating webhook sees the request as kube-apiserver sends it", async () => {
  const reviews: Any[] = [];
  await withSession(async (session) => {
    await configure(session, "Validating", "see");
    await session.create(`${MAPS}?fieldManager=me`, map("a", { k: "1" }));
    await session.patch(`${MAPS}/a`, { data: { k: "2" } });
    await session.send("DELETE", `${MAPS}/a`);
    const [created, updated, deleted] = reviews;
    const { uid, object, ...request } = created.request;
    assert.equal(created.kind, "AdmissionReview");
    assert.equal(created.apiVersion, "admission.k8s.io/v1");
    assert.match(uid, /^[0-9a-f-]{36}$/);
    assert.deepEqual(request, {
      kind: { group: "", version: "v1", kind: "ConfigMap" },
      resource: { group: "", version: "v1", resource: "configmaps" },
      requestKind: { group: "", version: "v1", kind: "ConfigMap" },
      requestResource: { group: "", version: "v1", resource: "configmaps" },
      name: "a",
      namespace: "default",
      operation: "CREATE",
      userInfo: {
        username: "kubernetes-admin",
        groups: ["system:masters", "system:authenticated"],
      },
      oldObject: null,
      dryRun: false,
      options: {
        kind: "CreateOptions",
        apiVersion: "meta.k8s.io/v1",
        fieldManager: "me",
      },
    });
    assert.deepEqual(object.data, { k: "1" });
    assert.notEqual(object.metadata.uid, undefined);
    assert.equal(updated.request.operation, "UPDATE");
    assert.deepEqual(updated.request.oldObject.data, { k: "1" });
    assert.deepEqual(updated.request.object.data, { k: "2" });
    assert.equal(deleted.request.operation, "DELETE");
    assert.equal(deleted.request.object, null);
    assert.equal(deleted.request.oldObject.metadata.name, "a");
    assert.equal(deleted.request.options.kind, "DeleteOptions");
    assert.equal(reviews.length, 3);
  }, services({ see: (review) => (reviews.push(review), answer(review, {})) }));
});

test("A denial has code, reason and message of the webhook", async () => {
  let response: Record<string, unknown> = {};
  await withSession(
    async (session) => {
      await configure(session, "Validating", "no");
      const refusal = async (status?: unknown) => {
        response = { allowed: false, status };
        const { status: code, body } = await session.send(
          "POST",
          MAPS,
          map("a"),
        );
        assert.equal(body.kind, "Status");
        assert.equal(body.code, code);
        return [code, body.reason, body.message];
      };
      const by = 'admission webhook "no.coracle.dev" denied the request';
      assert.deepEqual(await refusal(), [
        400,
        undefined,
        `${by} without explanation`,
      ]);
      assert.deepEqual(
        await refusal({ code: 403, reason: "Forbidden", message: "too late" }),
        [403, "Forbidden", `${by}: too late`],
      );
      assert.deepEqual(await refusal({ code: 200, reason: "Gone" }), [
        400,
        "Gone",
        `${by}: Gone`,
      ]);
      assert.equal((await session.send("GET", `${MAPS}/a`)).status, 404);
    },
    services({ no: (review) => answer(review, response) }),
  );
});

test("Mutating webhooks patch the object in the order of their names", async () => {
  const seen: Any[] = [];
  const add = (key: string) => (review: Any) => {
    seen.push([key, Object.keys(review.request.object.data)]);
    return answer(
      review,
      patchOf([{ op: "add", path: `/data/${key}`, value: key }]),
    );
  };
  await withSession(async (session) => {
    await configure(session, "Mutating", "b");
    await configure(session, "Mutating", "a");
    await configure(session, "Validating", "c");
    const { data, metadata } = await session.create(MAPS, map("m", { x: "" }));
    assert.deepEqual(data, { x: "", a: "a", b: "b" });
    assert.deepEqual(seen, [["a", ["x"]], ["b", ["x", "a"]]]);
    const owned = JSON.stringify(metadata.managedFields);
    assert.match(owned, /f:x/);
    assert.doesNotMatch(owned, /f:a/);
  }, services({ a: add("a"), b: add("b"), c: (review) => answer(review, {}) }));
});

test("A patch that does not apply is refused as by kube-apiserver", async () => {
  await withSession(
    async (session) => {
      await configure(session, "Mutating", "a");
      const { status, body } = await session.send("POST", MAPS, map("m"));
      assert.equal(status, 500);
      assert.equal(
        body.message,
        'Internal error occurred: remove operation does not apply: doc is missing path: "/no/thing": missing value',
      );
    },
    services({
      a: (review) =>
        answer(review, patchOf([{ op: "remove", path: "/no/thing" }])),
    }),
  );
});

test("A mutating webhook sees neither UID nor generated name", async () => {
  const seen: Any[] = [];
  await withSession(
    async (session) => {
      await configure(session, "Mutating", "a");
      const created = await session.create(MAPS, {
        metadata: { generateName: "m-" },
      });
      assert.match(created.metadata.name, /^m-.{5}$/);
      assert.deepEqual(created.data, { a: "1" });
      const [{ request }] = seen;
      assert.equal(request.name, undefined);
      assert.equal(request.object.metadata.name, undefined);
      assert.equal(request.object.metadata.uid, undefined);
      assert.equal(request.object.metadata.generateName, "m-");
    },
    services({
      a(review) {
        seen.push(review);
        return answer(
          review,
          patchOf([{ op: "add", path: "/data", value: { a: "1" } }]),
        );
      },
    }),
  );
});

test("A webhook runs again if a later one changed the object and it asks for that", async () => {
  const calls: string[] = [];
  const add = (key: string) => (review: Any) => {
    calls.push(key);
    return answer(
      review,
      key in review.request.object.data
        ? {}
        : patchOf([{ op: "add", path: `/data/${key}`, value: key }]),
    );
  };
  await withSession(async (session) => {
    await configure(session, "Mutating", "a", {
      reinvocationPolicy: "IfNeeded",
    });
    await configure(session, "Mutating", "b");
    await session.create(MAPS, map("m", { x: "" }));
    assert.deepEqual(calls, ["a", "b", "a"]);
    calls.length = 0;
    await session.create(MAPS, map("n", { a: "", b: "" }));
    assert.deepEqual(calls, ["a", "b"]);
  }, services({ a: add("a"), b: add("b") }));
});

test("Rules, selectors and match conditions decide which requests are sent", async () => {
  const seen: string[] = [];
  await withSession(
    async (session) => {
      const { send, create } = session;
      const once = async (webhook: Record<string, unknown>) => {
        seen.length = 0;
        await configure(session, "Validating", "see", webhook);
        await send.call(session, "DELETE", `${MAPS}/a`);
        seen.length = 0;
        await create.call(session, MAPS, {
          metadata: { name: "a", labels: { team: "blue" } },
        });
        await session.patch(`${MAPS}/a`, { data: { k: "1" } });
        await session.send("DELETE", `${MAPS}/a`);
        await session.send(
          "DELETE",
          `${GROUP}/validatingwebhookconfigurations/see`,
        );
        return seen.join(" ");
      };
      const rule = (changes: Record<string, unknown>) => ({
        rules: [{ ...RULES[0], ...changes }],
      });
      assert.equal(await once({}), "CREATE UPDATE DELETE");
      assert.equal(await once(rule({ operations: ["UPDATE"] })), "UPDATE");
      assert.equal(await once(rule({ apiGroups: ["apps"] })), "");
      assert.equal(await once(rule({ apiVersions: ["v2"] })), "");
      assert.equal(await once(rule({ resources: ["*/status"] })), "");
      assert.equal(
        await once(rule({ resources: ["*/*"], apiGroups: ["*"] })),
        "CREATE UPDATE DELETE",
      );
      assert.equal(await once(rule({ scope: "Cluster" })), "");
      assert.equal(
        await once({ objectSelector: { matchLabels: { team: "blue" } } }),
        "CREATE UPDATE DELETE",
      );
      assert.equal(
        await once({ objectSelector: { matchLabels: { team: "red" } } }),
        "",
      );
      const inDefault = {
        matchLabels: { "kubernetes.io/metadata.name": "default" },
      };
      assert.equal(
        await once({ namespaceSelector: inDefault }),
        "CREATE UPDATE DELETE",
      );
      assert.equal(
        await once({ namespaceSelector: { matchLabels: { a: "b" } } }),
        "",
      );
      assert.equal(
        await once({
          matchConditions: [
            { name: "new", expression: "oldObject == null" },
            {
              name: "who",
              expression:
                "request.userInfo.username.startsWith('kube') && authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
            },
          ],
        }),
        "CREATE",
      );
    },
    services({
      see(review) {
        seen.push(review.request.operation);
        return answer(review, {});
      },
    }),
  );
});

test("A match condition that fails follows the failure policy", async () => {
  await withSession(async (session) => {
    const matchConditions = [{
      name: "odd",
      expression: "object.data.missing == 'x'",
    }];
    await configure(session, "Validating", "see", { matchConditions });
    const { status, body } = await session.send("POST", MAPS, map("a"));
    assert.equal(status, 403);
    assert.equal(
      body.message,
      `configmaps "a" is forbidden: expression 'object.data.missing == 'x'' resulted in error: no such key: data`,
    );
    await session.patch(`${GROUP}/validatingwebhookconfigurations/see`, {
      webhooks: [{
        name: "see.coracle.dev",
        clientConfig: { service: { namespace: "ops", name: "none" } },
        rules: RULES,
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        matchConditions,
        failurePolicy: "Ignore",
      }],
    });
    await session.create(MAPS, map("a"));
  });
});

test("matchPolicy Equivalent converts to the version of the rule", async () => {
  const seen: Any[] = [];
  const rules = [{
    operations: ["CREATE"],
    apiGroups: ["autoscaling"],
    apiVersions: ["v2"],
    resources: ["horizontalpodautoscalers"],
  }];
  const scaler = (name: string) => ({
    metadata: { name },
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "a" },
      maxReplicas: 3,
      targetCPUUtilizationPercentage: 50,
    },
  });
  const path =
    "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
  await withSession(
    async (session) => {
      await configure(session, "Mutating", "a", { rules });
      const created = await session.create(path, scaler("a"));
      assert.equal(created.apiVersion, "autoscaling/v1");
      assert.equal(created.spec.maxReplicas, 7);
      assert.equal(created.spec.targetCPUUtilizationPercentage, 50);
      const [{ request }] = seen;
      assert.equal(request.object.apiVersion, "autoscaling/v2");
      assert.equal(request.kind.version, "v2");
      assert.equal(request.requestKind.version, "v1");
      await session.send("DELETE", `${GROUP}/mutatingwebhookconfigurations/a`);
      await configure(session, "Mutating", "a", {
        rules,
        matchPolicy: "Exact",
      });
      await session.create(path, scaler("b"));
      assert.equal(seen.length, 1);
    },
    services({
      a(review) {
        seen.push(review);
        return answer(
          review,
          patchOf([{ op: "replace", path: "/spec/maxReplicas", value: 7 }]),
        );
      },
    }),
  );
});

test("matchPolicy Equivalent holds while the definition is replaced", async () => {
  const [group, plural] = ["test.dev", "lamps"];
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const version = (name: string) => ({
    name,
    served: true,
    storage: name === "v2",
    schema: { openAPIV3Schema: { type: "object" } },
  });
  const rules = [{
    operations: ["CREATE"],
    apiGroups: [group],
    apiVersions: ["v2"],
    resources: [plural],
  }];
  const handlers: Record<string, (review: Any) => unknown> = {
    "b-denies": (review) => answer(review, { allowed: false }),
  };
  await withSession(
    async (session) => {
      await session.create(crds, {
        metadata: { name: `${plural}.${group}` },
        spec: {
          group,
          names: { kind: "Lamp", plural },
          scope: "Namespaced",
          versions: [version("v1"), version("v2")],
        },
      });
      await configure(session, "Mutating", "a-replaces", { rules });
      await configure(session, "Mutating", "b-denies", { rules });
      handlers["a-replaces"] = async (review) => {
        await session.patch(`${crds}/${plural}.${group}`, {
          spec: { names: { shortNames: ["lp"] } },
        });
        await until("the new definition is served", async () => {
          const { body } = await session.send("GET", `/apis/${group}/v1`);
          return body.resources[0].shortNames?.includes("lp");
        });
        return answer(review, {});
      };
      const { status, body } = await session.send(
        "POST",
        `/apis/${group}/v1/namespaces/default/${plural}`,
        {
          apiVersion: `${group}/v1`,
          kind: "Lamp",
          metadata: { name: "a" },
        },
      );
      assert.match(body.message, /denied/);
      assert.equal(status, 400);
    },
    services({
      ...handlers,
      "a-replaces": (one) => handlers["a-replaces"]?.(one),
    }),
  );
});

test("A webhook that fails refuses the request, or is ignored", async () => {
  const broken: Record<string, (review: Any) => unknown> = {
    throws() {
      throw new Error("sunk");
    },
    uid: (review) => answer(review, { uid: "other" }),
    kind: (review) => ({ ...answer(review, {}), kind: "Review" }),
    empty: () => ({}),
    patch: (review) => answer(review, patchOf([])),
  };
  const words: Record<string, RegExp> = {
    throws:
      /failed to call webhook: an error on the server \("sunk"\) has prevented the request from succeeding$/,
    uid:
      /received invalid webhook response: expected response\.uid="[0-9a-f-]+", got "other"$/,
    kind:
      /expected webhook response of admission\.k8s\.io\/v1, Kind=AdmissionReview, got admission\.k8s\.io\/v1, Kind=Review$/,
    empty: /received invalid webhook response: webhook response was absent$/,
    patch: /validating webhook may not return response\.patch$/,
    gone:
      /failed to call webhook: Post "https:\/\/gone\.ops\.svc:443\/review\?timeout=10s": service "gone" not found$/,
  };
  await withSession(async (session) => {
    for (const [name, expected] of Object.entries(words)) {
      await configure(session, "Validating", name);
      const { status, body } = await session.send("POST", MAPS, map("a"));
      assert.equal(status, 500);
      assert.equal(body.reason, "InternalError");
      assert.match(
        body.message,
        /^Internal error occurred: failed calling webhook "\w+\.coracle\.dev": /,
      );
      assert.match(body.message, expected);
      await session.send(
        "DELETE",
        `${GROUP}/validatingwebhookconfigurations/${name}`,
      );
      await configure(session, "Validating", name, { failurePolicy: "Ignore" });
      await session.create(MAPS, map(name));
      await session.send(
        "DELETE",
        `${GROUP}/validatingwebhookconfigurations/${name}`,
      );
    }
  }, services(broken));
});

test("The path of a webhook's URL is sent without empty segments", async () => {
  const authority = createAuthority({ commonName: "webhooks" });
  const serving = issueCertificate(authority, {
    commonName: "webhook",
    usage: "server",
    hosts: ["127.0.0.1"],
  });
  const paths: string[] = [];
  const server = createServer(
    { cert: serving.certificate, key: serving.key },
    async (request, response) => {
      paths.push(request.url ?? "");
      let text = "";
      for await (const chunk of request) text += chunk;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer(JSON.parse(text), {})));
    },
  );
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  try {
    await withSession(async (session) => {
      await configure(session, "Validating", "remote", {
        clientConfig: {
          url: `https://127.0.0.1:${port}//review//all/`,
          // envtest gives the certificate of the server itself.
          caBundle: btoa(
            "Deno" in globalThis ? authority.certificate : serving.certificate,
          ),
        },
      });
      await session.create(MAPS, { metadata: { name: "one" } });
    });
    assert.deepEqual(paths, ["/review/all?timeout=10s"]);
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
});

test("A slow webhook is given up after its time-out, on the server's clock", async () => {
  const clock = new VirtualClock();
  await withSession(async (session) => {
    await configure(session, "Validating", "slow", { timeoutSeconds: 3 });
    const answer = session.send("POST", MAPS, map("a"));
    await clock.advance(3_000);
    assert.equal(
      (await answer).body.message,
      'Internal error occurred: failed calling webhook "slow.coracle.dev": failed to call webhook: Post "https://slow.ops.svc:443/review?timeout=3s": context deadline exceeded',
    );
  }, { clock, ...services({ slow: () => new Promise(() => {}) }) });
});

test("Side effects forbid dry runs, and a dry run says so", async () => {
  const seen: Any[] = [];
  await withSession(async (session) => {
    await configure(session, "Validating", "see");
    await session.create(`${MAPS}?dryRun=All`, map("a"));
    assert.equal(seen[0].request.dryRun, true);
    assert.deepEqual(seen[0].request.options.dryRun, ["All"]);
    assert.equal((await session.send("GET", `${MAPS}/a`)).status, 404);
  }, services({ see: (review) => (seen.push(review), answer(review, {})) }));
});

test("Warnings and audit annotations of webhooks reach client and audit", async () => {
  const events: Any[] = [];
  const warn = (review: Any) =>
    answer(review, {
      warnings: ["old", "old"],
      auditAnnotations: { seen: "yes" },
    });
  await withSession(async (session) => {
    await configure(session, "Mutating", "m");
    await configure(session, "Validating", "v");
    const { headers } = await session.send("POST", MAPS, map("a"));
    assert.equal(headers.warning, '299 - "old"');
    assert.deepEqual(events.at(-1).annotations, {
      "m.coracle.dev/seen": "yes",
      "mutation.webhook.admission.k8s.io/round_0_index_0":
        '{"configuration":"m","webhook":"m.coracle.dev","mutated":false}',
      "v.coracle.dev/seen": "yes",
    });
  }, {
    ...services({ m: warn, v: warn }),
    audit: (event) => events.push(event),
  });
});

test("Webhooks see the Scale of a scaled object, and namespaces their own labels", async () => {
  const seen: Any[] = [];
  await withSession(async (session) => {
    await configure(session, "Validating", "see", {
      rules: [{
        operations: ["UPDATE"],
        apiGroups: ["apps"],
        apiVersions: ["v1"],
        resources: ["deployments/scale"],
      }, {
        operations: ["CREATE"],
        apiGroups: [""],
        apiVersions: ["v1"],
        resources: ["namespaces"],
      }],
      namespaceSelector: {
        matchExpressions: [{ key: "quiet", operator: "DoesNotExist" }],
      },
    });
    const path = "/apis/apps/v1/namespaces/default/deployments";
    await session.create(path, {
      metadata: { name: "d" },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: {
          metadata: { labels: { a: "b" } },
          spec: { containers: [{ name: "c", image: "i" }] },
        },
      },
    });
    await session.patch(`${path}/d/scale`, { spec: { replicas: 4 } });
    const [{ request }] = seen;
    assert.equal(request.kind.kind, "Scale");
    assert.equal(request.subResource, "scale");
    assert.equal(request.object.spec.replicas, 4);
    assert.equal(request.oldObject.spec.replicas, 1);
    await session.create("/api/v1/namespaces", {
      metadata: { name: "loud" },
    });
    assert.equal(seen[1].request.namespace, "loud");
    await session.create("/api/v1/namespaces", {
      metadata: { name: "quiet", labels: { quiet: "yes" } },
    });
    assert.equal(seen.length, 2);
  }, services({ see: (review) => (seen.push(review), answer(review, {})) }));
});

test("An object that changes while a webhook thinks is reviewed again", async () => {
  const seen: string[] = [];
  let interfere: (() => Promise<unknown>) | undefined;
  await withSession(
    async (session) => {
      await session.create(MAPS, map("a"));
      await configure(session, "Validating", "see");
      interfere = async () => {
        interfere = undefined;
        await session.patch(`${MAPS}/a`, { data: { other: "1" } });
      };
      const { body } = await session.patch(`${MAPS}/a`, { data: { own: "1" } });
      assert.deepEqual(body.data, { other: "1", own: "1" });
      assert.deepEqual(seen, ["own", "other", "other,own"]);
    },
    services({
      async see(review) {
        seen.push(Object.keys(review.request.object.data).sort().join());
        await interfere?.();
        return answer(review, {});
      },
    }),
  );
});

test("A configuration is never sent to webhooks", async () => {
  const seen: unknown[] = [];
  await withSession(async (session) => {
    await configure(session, "Validating", "see", {
      rules: [{
        operations: ["*"],
        apiGroups: ["*"],
        apiVersions: ["*"],
        resources: ["*/*"],
      }],
    });
    await session.patch(`${GROUP}/validatingwebhookconfigurations/see`, {
      metadata: { labels: { a: "b" } },
    });
    await session.send(
      "DELETE",
      `${GROUP}/validatingwebhookconfigurations/see`,
    );
    assert.deepEqual(seen, []);
  }, services({ see: (review) => (seen.push(review), answer(review, {})) }));
});

test("A stop of the server ends the calls of webhooks that are under way", async () => {
  const clock = new VirtualClock();
  const called = Promise.withResolvers<AbortSignal>();
  const server = await ApiServer.start({
    port: false,
    clock,
    services: {
      "ops/slow": (_review, { signal }) => {
        called.resolve(signal);
        return new Promise(() => {});
      },
    },
  });
  const session = new ApiSession(server);
  await configure(session, "Validating", "slow");
  const created = assert.rejects(session.create(MAPS, map("a")), /refused/);
  const signal = await called.promise;
  await server.stop();
  assert.ok(signal.aborted);
  await created;
  assert.equal(clock.pendingTimers, 0);
});
