import assert from "node:assert/strict";
import { test } from "node:test";
import { Operator } from "@coracle/operator/core";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import {
  CheckSession,
  type Judgement,
} from "../../../dev/testing/check/check_session.ts";
import type { Perturbation } from "../../../dev/testing/check/plan.ts";
import { restingKey } from "../../../dev/testing/check/resting_state.ts";
import type {
  RequestEntry,
  TraceEntry,
} from "../../../dev/testing/check/trace.ts";
import { checkedObject } from "./check_case.ts";

const uid = (last: number) => `00000000-0000-4000-8000-00000000000${last}`;

function request(more: Partial<RequestEntry> = {}): RequestEntry {
  return {
    type: "request",
    at: 0,
    n: 1,
    incarnation: 1,
    verb: "patch",
    group: "",
    resource: "secrets",
    subresource: "",
    namespace: "default",
    name: "a",
    path: "/api/v1/namespaces/default/secrets/a",
    body: "{}",
    dryRun: false,
    code: 200,
    changed: true,
    answered: true,
    uid: uid(1),
    ...more,
  };
}

const call: TraceEntry = {
  type: "external",
  at: 0,
  incarnation: 1,
  method: "POST",
  url: "http://bank.test/",
  status: 200,
  n: 1,
};
const secret = (text: string) => [
  checkedObject("Secret", "a", { data: { text } }),
];

/** Key of a state in which a process has requested something. */
function key(
  trace: readonly TraceEntry[],
  text = "a",
  incarnation = 1,
): string {
  return restingKey(trace, secret(text), incarnation);
}

test("States at rest are equal whatever the order, UIDs, times and revisions", () => {
  const [first, second] = [request(), request({ name: "b", path: "/b" })];
  const plain = key([first, second]);
  assert.equal(key([second, first, first]), plain);
  assert.equal(key([first, { ...second, code: 201 }]), plain);
  assert.equal(key([request({ incarnation: 2 })], "a", 2), key([first]));
  const body = (last: number, second: number) =>
    key([request({
      uid: uid(last),
      body: `{"of":"${
        uid(last)
      }","at":"2026-01-01T00:00:0${second}Z","resourceVersion":"${second}"}`,
    })]);
  assert.equal(body(1, 1), body(2, 2));
});

test("States at rest differ by objects, requests, failures and calls outside", () => {
  const keys = [
    key([request()]),
    key([request()], "b"),
    key([request({ body: '{"data":{}}' })]),
    key([request(), request({ code: 500 })]),
    key([request(), request({ code: 409 })]),
    key([request(), request({ answered: false })]),
    key([request({ code: 404 })]),
    key([request(), call]),
    key([request(), call, call]),
    // What an earlier process has requested is forgotten, but not outside.
    key([request(), call], "a", 2),
    key([request()], "a", 2),
  ];
  assert.equal(new Set(keys).size, keys.length);
});

const map = (text: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "default", name: "a" },
  data: { text },
});
const steps = ["a", "b", "c"].map((text) => ({ apply: map(text) }));

/** Session of an operator that copies ConfigMaps, and the texts that it has seen. */
async function copies(
  { forgets = false }: {
    /** Whether it does not change what another process has made. */
    readonly forgets?: boolean;
  } = {},
): Promise<{
  seen(...perturbations: readonly Perturbation[]): Promise<string>;
  found(...perturbations: readonly Perturbation[]): Promise<readonly string[]>;
}> {
  const texts: string[] = [];
  const session = await CheckSession.open({
    operator(given) {
      const made = new Set<string>();
      const operator = new Operator(given);
      operator.register(ConfigMap, {
        async reconcile({ metadata: { name, namespace }, data }, ctx) {
          if (data?.["text"] === undefined) return;
          texts.push(data["text"]);
          const key = { name, namespace };
          if (forgets) {
            const found = await ctx.client.find(Secret, key);
            if (found === undefined) made.add(name);
            else if (!made.has(name)) return;
          }
          await ctx.apply(Secret, { metadata: key, stringData: data });
        },
      }, { owns: [Secret] });
      return operator;
    },
    seed: 1,
    simulate: false,
  });
  const scenario = { name: "life", steps, known: 0 };
  await session.reference(scenario);
  const found = async (...perturbations: readonly Perturbation[]) => {
    texts.length = 0;
    const job = { do: "plan", scenario, perturbations, masked: [] } as const;
    const { violations } = await session.run(job) as Judgement;
    return violations.map(({ oracle }) => oracle);
  };
  return {
    found,
    async seen(...perturbations) {
      assert.deepEqual(await found(...perturbations), []);
      return [...new Set(texts)].join("");
    },
  };
}

test("A run ends where its state at rest is that of an undisturbed run", async () => {
  const { seen } = await copies();
  assert.equal(await seen({ do: "cut", event: 1 }), "a");
  const crash = { do: "crash", write: 1, place: "unanswered" };
  assert.equal(await seen(crash), "a");
  // A new process has not made what was there before.
  assert.equal(await seen({ ...crash, write: 2 }), "abc");
});

test("A run ends where its state at rest is that of a run without findings", async () => {
  const { seen } = await copies();
  const lost = { do: "lost", write: 1 };
  assert.equal(await seen(lost), "abc");
  assert.equal(await seen(lost), "a");
  assert.equal(await seen({ do: "lost", write: 2 }), "ab");
});

test("A run goes on while its disturbance can have an effect", async () => {
  const { seen } = await copies();
  for (const ms of [90_000_000, -3_600_000]) {
    assert.equal(await seen({ do: "clock", write: 1, ms }), "abc");
  }
  assert.equal(await seen({ do: "late" }), "abc");
  const target = { apiVersion: "v1", namespace: "default", name: "a" };
  const deletion = { do: "delete", step: 1, kind: "Secret", ...target };
  assert.equal(await seen(deletion), "abc");
});

test("What a process has forgotten shows in the steps after its state at rest", async () => {
  const { found } = await copies({ forgets: true });
  const crash = { do: "crash", write: 1, place: "after" };
  assert.deepEqual(await found(crash), ["end-state"]);
  assert.deepEqual(await found(crash), ["end-state"]);
});
