import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import { ApiError } from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import {
  accessByClient,
  ConditionConflictError,
  type NewCondition,
  removeCondition,
  setCondition,
  SharedStatus,
} from "@coracle/operator/workflows";
import type { SharedStatusOptions } from "../../../workflows/conditions/shared_status.ts";
import { Release } from "../../support/release_kind.ts";

const KEY = { namespace: "default", name: "web" };
const READY: NewCondition = {
  type: "Ready",
  status: "True",
  reason: "Done",
  message: "It runs",
};

/** One release on a server, and what the server was asked since it is there. */
class StatusFixture {
  readonly server: ApiServer;
  readonly writes: AuditEvent[] = [];
  readonly clock: VirtualClock = new VirtualClock();

  private constructor(server: ApiServer) {
    this.server = server;
  }

  static async start(): Promise<StatusFixture> {
    const writes: AuditEvent[] = [];
    const server = await ApiServer.start({
      port: false,
      audit: (event) => {
        if (event.verb !== "get") writes.push(event);
      },
    });
    await installCrd(server.client, Release);
    await server.client.create(Release, {
      metadata: KEY,
      spec: { version: "1" },
    });
    const fixture = new StatusFixture(server);
    writes.length = 0;
    Object.assign(fixture, { writes });
    return fixture;
  }

  read(): Promise<Release> {
    return this.server.client.get(Release, KEY);
  }

  writer(
    object: Release,
    options: Partial<SharedStatusOptions<Release>> = {},
  ): SharedStatus<Release> {
    const { client } = this.server;
    return new SharedStatus(object, {
      access: accessByClient(Release, object, { client }),
      clock: this.clock,
      ...options,
    });
  }

  /** Somebody else sets a condition. */
  async foreign(condition: NewCondition): Promise<void> {
    const latest = await this.read();
    const conditions = setCondition(
      latest.status?.conditions ?? [],
      condition,
      moment(latest),
    );
    await this.server.client.status.patch(Release, KEY, {
      status: { conditions },
    });
    this.writes.length = 0;
  }
}

function moment(object: Release): { now: number; generation: number } {
  return { now: Date.now(), generation: object.metadata.generation ?? 0 };
}

function set(object: Release, condition: NewCondition): void {
  object.status ??= {};
  object.status.conditions = setCondition(
    object.status.conditions ?? [],
    condition,
    moment(object),
  );
}

function conditionTypes(object: Release): string[] {
  return (object.status?.conditions ?? []).map(({ type }) => type);
}

/** A test with one release on a server of its own. */
function statusTest(
  title: string,
  play: (fixture: StatusFixture) => Promise<void>,
): void {
  test(title, async () => {
    const fixture = await StatusFixture.start();
    try {
      await play(fixture);
    } finally {
      await fixture.server.stop();
    }
  });
}

statusTest(
  "A condition, a spec and a status that others changed meanwhile survive [F34]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    await fixture.foreign({ type: "Scanned", status: "True", reason: "Clean" });
    await fixture.server.client.patch(Release, KEY, {
      metadata: { labels: { theirs: "yes" } },
      spec: { suspend: true },
    });
    await fixture.server.client.status.patch(Release, KEY, {
      status: { lastHandledForceAt: "theirs" },
    });

    set(object, READY);
    object.spec.version = "2";
    object.metadata.labels = { ours: "yes" };
    object.status!.revision = "r2";
    assert(await status.write(object));
    const now = await fixture.read();
    assert.deepEqual(conditionTypes(now), ["Ready", "Scanned"]);
    assert.deepEqual(now.spec, { version: "2", suspend: true });
    assert.deepEqual(now.metadata.labels, { ours: "yes", theirs: "yes" });
    assert.equal(now.status?.revision, "r2");
    assert.equal(now.status?.lastHandledForceAt, "theirs");
  },
);

statusTest(
  "Conditions are written first, then metadata and spec, then the status [F34]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    set(object, READY);
    object.spec.version = "2";
    object.status!.revision = "r2";
    await status.write(object, { observed: true });
    assert.deepEqual(
      fixture.writes.map(({ subresource }) => subresource ?? ""),
      ["status", "", "status"],
    );
    assert.equal((await fixture.read()).status?.observedGeneration, 1);
  },
);

statusTest(
  "A status that changed alone is written at once, so that nobody sees half of it [F34]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    set(object, READY);
    object.status!.revision = "r2";
    await status.write(object, { observed: true });
    assert.equal(fixture.writes.length, 1);
    const { status: now } = await fixture.read();
    assert.equal(now?.observedGeneration, 1);
    assert.equal(now?.revision, "r2");
    assert.equal(now?.conditions?.length, 1);
  },
);

statusTest(
  "Ready that somebody else has changed is a conflict, unless it is owned or forced [F35]",
  async (fixture) => {
    const play = async (options: Partial<SharedStatusOptions<Release>>) => {
      const object = await fixture.read();
      const status = fixture.writer(object, options);
      await fixture.foreign({
        ...READY,
        status: "False",
        reason: `Theirs${Math.random()}`,
      });
      set(object, { ...READY, message: `Ours${Math.random()}` });
      await status.write(object);
      return await fixture.read();
    };
    await assert.rejects(play({}), ConditionConflictError);
    for (const options of [{ owned: ["Ready"] }, { force: true }]) {
      const now = await play(options);
      assert.equal(now.status?.conditions?.[0]?.reason, "Done");
    }
  },
);

statusTest(
  "A conflict over conditions keeps the spec write but not the generation [F35]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    await fixture.foreign({ ...READY, status: "False", reason: "Theirs" });
    set(object, READY);
    object.spec.version = "2";
    await assert.rejects(
      status.write(object, { observed: true }),
      ConditionConflictError,
    );
    const now = await fixture.read();
    assert.equal(now.spec.version, "2");
    assert.equal(now.status?.observedGeneration, undefined);
    // The base stays: once the conflict is solved, everything is compared again.
    object.status!.conditions = [];
    assert(await status.write(object));
  },
);

statusTest(
  "observedGeneration is written with a change of the spec alone, as it was seen [F36]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    object.spec.version = "2";
    await status.write(object, { observed: true });
    const now = await fixture.read();
    assert.equal(now.metadata.generation, 2);
    assert.equal(now.status?.observedGeneration, 1, "that which was seen");
  },
);

statusTest(
  "Where nobody else writes, nothing is read again [F37]",
  async (fixture) => {
    const object = await fixture.read();
    const { client } = fixture.server;
    const access = accessByClient(Release, object, { client });
    const status = fixture.writer(object, {
      access: { ...access, read: () => Promise.reject(new Error("A read")) },
    });
    for (const revision of ["r1", "r2"]) {
      set(object, { ...READY, message: revision });
      object.status!.revision = revision;
      await status.write(object);
    }
    assert.equal((await fixture.read()).status?.revision, "r2");
  },
);

statusTest(
  "Nothing is sent where nothing changed, observedGeneration or not [F36]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    assert.equal(await status.write(object), false);
    assert.equal(await status.write(object, { observed: true }), true);
    assert.equal(await status.write(object, { observed: true }), false);
    assert.equal(fixture.writes.length, 1);
  },
);

statusTest(
  "An object of another kind or name is refused [F36]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    await assert.rejects(
      status.write({ ...object, kind: "Other" }),
      /Cannot write sample.coracle.dev\/v1 Release default\/web: .* received sample.coracle.dev\/v1 Other/,
    );
    const metadata = { ...object.metadata, name: "other" };
    await assert.rejects(status.write({ ...object, metadata }), TypeError);
  },
);

statusTest(
  "Finalizer, conditions, their removal and the finalizer's land one after another [F37]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    object.metadata.finalizers = ["sample.coracle.dev/ours"];
    await status.write(object);
    // Somebody else's, which the pass has never seen.
    await fixture.server.client.patch(Release, KEY, [{
      op: "add",
      path: "/metadata/finalizers/-",
      value: "sample.coracle.dev/theirs",
    }], { type: "json" });
    set(object, READY);
    set(object, { type: "Stored", status: "True", reason: "Done" });
    await status.write(object);
    assert.deepEqual(conditionTypes(await fixture.read()), ["Ready", "Stored"]);

    object.status!.conditions = removeCondition(
      object.status!.conditions!,
      "Stored",
    );
    await status.write(object);
    assert.deepEqual(conditionTypes(await fixture.read()), ["Ready"]);
    object.metadata.finalizers = [];
    await status.write(object);
    const { finalizers } = (await fixture.read()).metadata;
    assert.deepEqual(finalizers, ["sample.coracle.dev/theirs"]);
  },
);

statusTest(
  "Conditions say the generation that the pass saw though there is a newer one [X6]",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object, { owned: ["Ready"] });
    await fixture.server.client.patch(Release, KEY, { spec: { version: "2" } });
    set(object, READY);
    await status.write(object, { observed: true });
    const now = await fixture.read();
    assert.equal(now.metadata.generation, 2);
    assert.equal(now.status?.conditions?.[0]?.observedGeneration, 1);
    assert.equal(now.status?.observedGeneration, 1);
  },
);

statusTest(
  "Writers who meet again and again are tried five times, with pauses",
  async (fixture) => {
    const object = await fixture.read();
    let writes = 0;
    const { client } = fixture.server;
    const access = accessByClient(Release, object, { client });
    const status = fixture.writer(object, {
      access: {
        ...access,
        // Somebody else is faster, every time.
        async patch(body, part) {
          await client.patch(Release, KEY, {
            metadata: { labels: { count: String(++writes) } },
          });
          return await access.patch(body, part);
        },
      },
    });
    set(object, READY);
    const written = status.write(object).catch((error: unknown) => error);
    let error: unknown;
    void written.then((value) => error = value);
    await fixture.clock.runUntil(() => error !== undefined, {
      idleTurns: 1_000,
    });
    assert(ApiError.is(error) && error.isConflict);
    assert.equal(writes, 5);
    assert(fixture.clock.now() >= 300 && fixture.clock.now() <= 600);
  },
);

statusTest(
  "An object that was deleted and made anew is not written",
  async (fixture) => {
    const object = await fixture.read();
    const status = fixture.writer(object);
    await fixture.server.client.delete(Release, KEY);
    await fixture.server.client.create(Release, {
      metadata: KEY,
      spec: { version: "1" },
    });
    set(object, READY);
    object.status!.revision = "r1";
    object.spec.version = "2";
    await assert.rejects(status.write(object), (error: Error) => {
      assert(error instanceof AggregateError);
      assert.equal(error.errors.length, 2);
      return true;
    });
    const now = await fixture.read();
    assert.equal(now.spec.version, "1");
    assert.equal(now.status, undefined);
  },
);

test("SharedStatus tries a write that the server refuses only once", async () => {
  const object = {
    apiVersion: "example.com/v1",
    kind: "Release",
    metadata: { ...KEY, uid: "1", resourceVersion: "1" },
    spec: { version: "1" },
  } as unknown as Release;
  let writes = 0;
  const status = new SharedStatus(object, {
    access: {
      read: () => Promise.resolve(object),
      patch() {
        writes++;
        const details = { status: 422, reason: "Invalid" };
        return Promise.reject(new ApiError("No such field", details));
      },
    },
  });
  const changed = structuredClone(object);
  set(changed, READY);
  await assert.rejects(status.write(changed), /No such field/);
  assert.equal(writes, 1);
});
