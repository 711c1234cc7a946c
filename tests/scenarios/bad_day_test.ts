import assert from "node:assert/strict";
import {
  type Client,
  type Operator,
  patchStatus,
} from "@coracle/operator/core";
import { ConfigMap, type PolicyRule } from "@coracle/operator/kinds";
import { limitedClient } from "../support/limited_client.ts";
import {
  Gadget,
  type Gadget as GadgetObject,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const MINUTE = 60_000;

/** Database that a reconciler needs. */
class Database {
  isDown = false;
  readonly rows: Map<string, string> = new Map();

  write(name: string, value: string | undefined): void {
    if (this.isDown) throw new Error("connect ECONNREFUSED 10.0.0.7:5432");
    if (value === undefined) this.rows.delete(name);
    else this.rows.set(name, value);
  }
}

/**
 * Operator as a user writes it, with the default options: each gadget has a row
 * in a database, a ConfigMap and a status.
 */
function gadgets(
  fixture: OperatorFixture,
  { client, database }: {
    readonly client?: Client;
    readonly database?: Database;
  } = {},
): Operator {
  const operator = fixture.operator(client && { client });
  operator.register(Gadget, {
    async reconcile({ metadata: { name }, spec: { value } }, ctx) {
      database?.write(name, value);
      await ctx.apply(ConfigMap, { metadata: { name }, data: { value } });
      return patchStatus({ value });
    },
    ...(database !== undefined && {
      cleanup: ({ metadata }: GadgetObject) =>
        database.write(metadata.name, undefined),
    }),
  }, { owns: [ConfigMap] });
  return operator;
}

async function mapOf(
  { client }: OperatorFixture,
  name: string,
): Promise<string | undefined> {
  const map = await client.find(ConfigMap, { namespace: "default", name });
  return map?.data?.["value"];
}

/** Whether ConfigMap and status of a gadget say what its spec says. */
async function isDone(
  fixture: OperatorFixture,
  name: string,
): Promise<boolean> {
  const gadget = await fixture.gadget(name);
  return gadget !== undefined && gadget.status?.value === gadget.spec.value &&
    await mapOf(fixture, name) === gadget.spec.value;
}

/**
 * Checks that all gadgets are done within the longest default pause, that the
 * operator is healthy, and that nothing is written in ten more minutes.
 */
async function endsWell(
  fixture: OperatorFixture,
  operator: Operator,
  names: readonly string[],
): Promise<void> {
  await fixture.until(async () => {
    for (const name of names) if (!await isDone(fixture, name)) return false;
    return true;
  }, 6 * MINUTE);
  // The failures of these gadgets are over, so their Events are written. One that is
  // done may wait for its next attempt.
  await fixture.until(
    () =>
      /^coracle_failing_objects\{controller="gadget"\} 0$/m.test(
        operator.metrics(),
      ),
    6 * MINUTE,
  );
  assert.equal(operator.health().healthy, true);
  assert.equal(operator.health().ready, true);
  await fixture.advance(10_000);
  const writes = () =>
    fixture.requests.filter(({ method }) => method !== "GET").length;
  const before = writes();
  await fixture.advance(10 * MINUTE);
  assert.equal(writes(), before, "writes in a quiet time");
}

scenario(
  "A database that is down for ten minutes ends well by itself",
  async (fixture) => {
    const database = new Database();
    const operator = gadgets(fixture, { database });
    await fixture.start(operator);
    for (const name of ["kept", "changed", "deleted"]) {
      await fixture.create(name);
    }
    await fixture.until(() => isDone(fixture, "deleted"));
    database.isDown = true;
    await fixture.create("created");
    await fixture.change("changed", { value: "second" });
    await fixture.remove("deleted");
    await fixture.advance(10 * MINUTE);
    assert.equal(operator.health().healthy, true, "one object is not all");
    assert.equal(database.rows.has("deleted"), true);
    database.isDown = false;
    await endsWell(fixture, operator, ["kept", "changed", "created"]);
    await fixture.until(async () =>
      await fixture.gadget("deleted") === undefined
    );
    assert.deepEqual(Object.fromEntries(database.rows), {
      kept: "first",
      changed: "second",
      created: "first",
    });
  },
);

scenario(
  "A deleted ConfigMap is back within seconds, seen or not",
  async (fixture) => {
    const key = { namespace: "default", name: "a" };
    const lose = () => fixture.client.delete(ConfigMap, key);
    const operator = gadgets(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => isDone(fixture, "a"));
    await lose();
    await fixture.until(() => isDone(fixture, "a"), 5_000);
    // While no watch is open.
    const outage = fixture.faults.add({
      verb: ["list", "watch"],
      resource: "configmaps",
      effect: { status: 503 },
    });
    fixture.faults.cutWatches({ resource: "configmaps" });
    await lose();
    await fixture.advance(MINUTE);
    outage.remove();
    await endsWell(fixture, operator, ["a"]);
    // While no operator runs.
    await fixture.done(operator.stop());
    await lose();
    const next = gadgets(fixture);
    await fixture.start(next);
    await endsWell(fixture, next, ["a"]);
  },
);

scenario(
  "A status that cannot be written for ten minutes is written in the end",
  async (fixture) => {
    const operator = gadgets(fixture);
    await fixture.start(operator);
    await fixture.create("before");
    await fixture.until(() => isDone(fixture, "before"));
    for (const effect of [{ status: 500 }, { conflict: true }] as const) {
      const failure = fixture.faults.add({
        resource: "gadgets",
        subresource: "status",
        effect,
      });
      const value = JSON.stringify(effect);
      await fixture.change("before", { value });
      await fixture.advance(10 * MINUTE);
      assert.notEqual((await fixture.gadget("before"))?.status?.value, value);
      assert.equal(await mapOf(fixture, "before"), value);
      failure.remove();
      await endsWell(fixture, operator, ["before"]);
    }
  },
);

scenario(
  "A second writer is slowed down, and the reconciler wins when it stops",
  async (fixture) => {
    const operator = gadgets(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => isDone(fixture, "a"));
    const key = { namespace: "default", name: "a" };
    const before = fixture.requests.length;
    // Every second for five minutes, the map and the status.
    for (let second = 0; second < 300; second++) {
      await fixture.client.patch(ConfigMap, key, { data: { value: "theirs" } });
      await fixture.client.status.patch(Gadget, key, {
        status: { value: "theirs" },
      });
      await fixture.advance(1_000);
    }
    const writes =
      fixture.requests.slice(before).filter(({ resource, verb }) =>
        verb === "patch" && resource !== "events" && resource !== "leases"
      ).length - 600;
    assert.ok(writes < 300, `${writes} writes in five minutes`);
    assert.ok(
      fixture.log.some(({ message }) =>
        message.startsWith("Runs repeat the same write")
      ),
    );
    await endsWell(fixture, operator, ["a"]);
  },
);

const BASIC: readonly PolicyRule[] = [
  {
    apiGroups: ["sample.coracle.dev"],
    resources: ["gadgets"],
    verbs: ["get", "list", "watch"],
  },
  {
    apiGroups: ["sample.coracle.dev"],
    resources: ["gadgets/status"],
    verbs: ["patch"],
  },
  { apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] },
];

const WRITE: PolicyRule = {
  apiGroups: [""],
  resources: ["configmaps"],
  verbs: ["get", "create", "patch"],
};

scenario(
  "A right to write that is granted late is used without a restart",
  async (fixture) => {
    const { client, grant } = await limitedClient(fixture, BASIC);
    const operator = gadgets(fixture, { client });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.advance(10 * MINUTE);
    assert.equal(await mapOf(fixture, "a"), undefined);
    const failure = fixture.log.find(({ message }) =>
      message.startsWith("Run failed")
    );
    assert.match(String(failure?.fields["error"]), /forbidden.*configmaps/s);
    await grant([...BASIC, WRITE]);
    await endsWell(fixture, operator, ["a"]);
  },
);

scenario(
  "A right to watch that is granted late is used by the restarts of the kubelet",
  async (fixture) => {
    const { client, grant } = await limitedClient(
      fixture,
      BASIC.slice(0, 2),
    );
    await fixture.create("a");
    let restarts = 0;
    for (;;) {
      const operator = gadgets(fixture, { client });
      try {
        await fixture.start(operator);
        await endsWell(fixture, operator, ["a"]);
        break;
      } catch (error) {
        if (++restarts > 3) throw error;
        assert.match(String(error), /configmaps/);
        await fixture.advance(20_000);
        if (restarts < 3) continue;
        await grant([...BASIC, WRITE]);
      }
    }
    assert.equal(restarts, 3);
  },
);
