import assert from "node:assert/strict";
import { RestrictedTransport } from "../../core/apiserver/restricted_transport.ts";
import { Client } from "../../core/client/client.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { ConfigMap, Lease, Namespace } from "../../core/kinds/mod.ts";
import type { ControllerHandle } from "../../core/operator/controller_handle.ts";
import type { Operator } from "../../core/operator/operator.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

interface Replica {
  readonly operator: Operator;
  readonly controller: ControllerHandle<Gadget>;
  readonly seen: string[];
}

/** One of several replicas of an operator. */
function replica(one: OperatorCase, identity: string): Replica {
  const seen: string[] = [];
  const operator = one.operator({ leaderElection: { name: "lock", identity } });
  const controller = operator.register(Gadget, {
    reconcile(gadget) {
      seen.push(gadget.spec.value);
      return patchStatus({ value: identity });
    },
  }, { namespaces: ["default"] });
  return { operator, controller, seen };
}

scenario(
  "Only the leader runs; when it stops another takes over with warm caches [LeaderElectionE2E]",
  async (one) => {
    const a = replica(one, "a");
    const b = replica(one, "b");
    await one.start(a.operator);
    await one.until(() => a.operator.health().leading);
    await one.start(b.operator);
    await one.create("x");
    await one.until(async () => (await one.gadget("x"))?.status?.value === "a");
    await one.advance(30_000);
    assert.deepEqual(b.seen, []);
    assert.equal(b.operator.health().leading, false);
    assert.equal(b.operator.health().leader, "a");
    assert.equal(b.operator.health().ready, true, "a standby is ready");
    assert.equal(b.controller.health().primaries, 1, "and its caches are warm");
    await one.done(a.operator.stop());
    await one.until(() => b.operator.health().leading, 5_000);
    await one.until(() => b.seen.length === 1);
    await one.change("x", { value: "second" });
    await one.until(async () =>
      b.seen.length === 2 && (await one.gadget("x"))?.status?.value === "b"
    );
    assert.deepEqual(a.seen, ["first"]);
  },
);

scenario(
  "A replica that lost its lease steps down without exiting, gets no write through, and can lead again [3.9.2]",
  async (one) => {
    const a = replica(one, "a");
    await one.start(a.operator);
    await one.until(() => a.operator.health().leading);
    let write: Promise<unknown> | undefined;
    const slow = a.operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        if (gadget.spec.value !== "slow" || write !== undefined) return;
        await new Promise<void>((resolve) =>
          ctx.signal.addEventListener("abort", () => resolve())
        );
        write = ctx.client.create(ConfigMap, {
          metadata: { namespace: "default", name: "late" },
        });
        write.catch(() => {});
      },
    }, { name: "slow" });
    await one.until(() => slow.health().ready);
    await one.create("x", { value: "slow" });
    await one.settle();
    const fault = one.faults.add({
      resource: "leases",
      effect: { status: 500 },
    });
    await one.until(() => !a.operator.health().leading);
    await one.settle();
    assert.match(String(await write?.catch(String)), /does not lead/);
    assert.equal(
      await one.client.find(ConfigMap, { namespace: "default", name: "late" }),
      undefined,
    );
    await one.change("x", { value: "second" });
    await one.advance(10_000);
    assert.ok(!a.seen.includes("second"), "nothing is run any more");
    fault.remove();
    await one.until(() => a.operator.health().leading);
    await one.until(() => a.seen.includes("second"));
  },
);

scenario(
  "Another holder of the lease: nothing runs, before and after a change of namespaces [LeaderElectionChangeNamespaceIT]",
  async (one) => {
    await one.client.create(Namespace, { metadata: { name: "other" } });
    const hold = async () => {
      const key = { namespace: "default", name: "lock" };
      const present = await one.client.find(Lease, key);
      const now = new Date(one.clock.wallTime()).toISOString().replace(
        "Z",
        "000Z",
      );
      const spec = {
        holderIdentity: "somebody",
        leaseDurationSeconds: 3600,
        renewTime: now,
        acquireTime: now,
      };
      if (present === undefined) {
        await one.client.create(Lease, { metadata: key, spec });
      }
    };
    await hold();
    const a = replica(one, "a");
    await one.start(a.operator);
    await one.create("x");
    await one.advance(10_000);
    assert.deepEqual(a.seen, []);
    await one.done(a.controller.changeNamespaces(["default", "other"]));
    await one.client.create(Gadget, {
      metadata: { namespace: "other", name: "y" },
      spec: { value: "y" },
    });
    await one.advance(10_000);
    assert.deepEqual(a.seen, []);
    assert.equal(a.controller.health().primaries, 2);
  },
);

scenario(
  "Without the right to use the lease the start fails, and says which is missing [LeaderElectionPermissionIT]",
  async (one) => {
    const transport = new RestrictedTransport(one.transport, [
      {
        apiGroups: ["sample.coracle.dev"],
        resources: ["*"],
        verbs: ["list", "watch"],
      },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["get"],
      },
    ], { user: "operator" });
    const client = new Client({ transport, namespace: "default" }, {
      clock: one.clock,
    });
    const operator = one.operator({ client, leaderElection: { name: "lock" } });
    operator.register(Gadget, { reconcile() {} });
    await assert.rejects(
      one.start(operator),
      /Lease default\/lock: the right is missing.*verbs: \["get", "create", "update"\].*received no right to create, update/s,
    );
  },
);
