import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import { ApiError, type Client } from "@coracle/operator/client";
import { Namespace } from "@coracle/operator/kinds";
import {
  ExclusiveStatus,
  type ExclusiveStatusOptions,
  StatusTamperedError,
} from "../../../workflows/phases/exclusive_status.ts";

const KEY = { name: "shop" };

/** A namespace, which has a status of its own, and who alone writes it. */
async function withNamespace(
  body: (parts: {
    readonly client: Client;
    readonly statuses: ExclusiveStatus<Namespace>;
    readonly read: () => Promise<Namespace>;
  }) => Promise<void>,
  options: ExclusiveStatusOptions<Namespace> = {},
): Promise<void> {
  const server = await ApiServer.start({ port: false });
  const { client } = server;
  try {
    await client.create(Namespace, { metadata: KEY });
    const read = async () => structuredClone(await client.get(Namespace, KEY));
    const statuses = new ExclusiveStatus(Namespace, options);
    await body({ client, statuses, read });
  } finally {
    await server.stop();
  }
}

function condition(reason: string) {
  return { type: "Ready", status: "True", reason, message: "" };
}

test("ExclusiveStatus writes what is new, once, and nothing that is not [L39]", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    assert.equal(await statuses.write(object, client), false);
    object.status = { ...object.status, conditions: [condition("First")] };
    assert.equal(await statuses.write(object, client), true);
    assert.equal(await statuses.write(object, client), false);
  }));

test("ExclusiveStatus goes on over a change of other parts [L39]", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    await client.patch(Namespace, KEY, { metadata: { labels: { a: "b" } } });
    object.status = { ...object.status, conditions: [condition("First")] };
    assert.equal(await statuses.write(object, client), true);
    const stored = await read();
    assert.equal(stored.status?.conditions?.[0]?.reason, "First");
    assert.deepEqual(stored.metadata.labels?.["a"], "b");
    object.status.conditions = [condition("Second")];
    assert.equal(
      await statuses.write(object, client),
      true,
      "in the same pass",
    );
  }));

test("ExclusiveStatus writes once if a webhook refuses the write by 409", () =>
  withNamespace(async ({ client, statuses, read }) => {
    let writes = 0;
    const refusing = client.with([(next) => async (request) => {
      if (request.method !== "PUT") return await next(request);
      writes++;
      throw new ApiError("Cannot replace: denied", { status: 409 });
    }]);
    const object = await read();
    statuses.adopt(object);
    object.status = { ...object.status, conditions: [condition("First")] };
    await assert.rejects(
      statuses.write(object, refusing),
      /denied; no other client has changed the object/,
    );
    assert.equal(writes, 1);
  }));

test("ExclusiveStatus never overwrites a status of another writer [L39]", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    await client.status.patch(Namespace, KEY, {
      status: { conditions: [condition("Foreign")] },
    });
    object.status = { ...object.status, conditions: [condition("Ours")] };
    await assert.rejects(statuses.write(object, client), StatusTamperedError);
    const stored = await read();
    assert.equal(stored.status?.conditions?.[0]?.reason, "Foreign");
  }));

test("ExclusiveStatus does not write an object that was created again meanwhile", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    await client.patch(Namespace, KEY, { metadata: { labels: { a: "b" } } });
    const { status } = client;
    const other = {
      status,
      get: async () => {
        const { metadata, ...rest } = await read();
        return { ...rest, metadata: { ...metadata, uid: "another" } };
      },
    } as unknown as Client;
    object.status = { ...object.status, conditions: [condition("Late")] };
    await assert.rejects(statuses.write(object, other), StatusTamperedError);
    assert.equal((await read()).status?.conditions, undefined);
  }));

test("ExclusiveStatus keeps the generation of the run though there is a newer one", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    object.metadata.generation = 1;
    statuses.adopt(object);
    const newer = {
      status: {
        replace: async (...args: Parameters<Client["status"]["replace"]>) => {
          const stored = await client.status.replace(...args);
          return { ...stored, metadata: { ...stored.metadata, generation: 2 } };
        },
      },
    } as unknown as Client;
    for (const reason of ["First", "Second"]) {
      object.status = { ...object.status, conditions: [condition(reason)] };
      assert.equal(await statuses.write(object, newer), true);
      assert.equal(object.metadata.generation, 1, reason);
    }
  }));

test("ExclusiveStatus reports clearly that an object was deleted [L39]", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const gone: Client["get"] = () =>
      Promise.reject(
        new ApiError("Cannot get: not found", {
          status: 404,
          reason: "NotFound",
        }),
      );
    const object = await read();
    statuses.adopt(object);
    await client.patch(Namespace, KEY, { metadata: { labels: { a: "b" } } });
    object.status = { ...object.status, conditions: [condition("Late")] };
    const blind = { status: client.status, get: gone } as unknown as Client;
    await assert.rejects(
      statuses.write(object, blind),
      (error) => ApiError.is(error) && error.isNotFound,
    );
  }));

test("ExclusiveStatus gives an older copy the status that was written last", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const old = await read();
    const object = structuredClone(old);
    statuses.adopt(object);
    object.status = { ...object.status, conditions: [condition("Newer")] };
    await statuses.write(object, client);
    assert.equal(statuses.adopt(old), false);
    assert.equal(old.status?.conditions?.[0]?.reason, "Newer");
  }));

test("ExclusiveStatus restores an invalid status, even after a failed write", () =>
  withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    object.status = { ...object.status, conditions: [condition("Ours")] };
    await statuses.write(object, client);
    await client.status.patch(Namespace, KEY, {
      status: { conditions: [condition("Foreign")] },
    });
    for (let pass = 0; pass < 2; pass++) {
      const found = await read();
      assert.equal(statuses.adopt(found), true);
      assert.equal(found.status?.conditions?.[0]?.reason, "Ours");
      const down = {
        status: { replace: () => Promise.reject(new Error("no route")) },
      } as unknown as Client;
      await assert.rejects(statuses.write(found, down), /no route/);
    }
    const found = await read();
    statuses.adopt(found);
    assert.equal(await statuses.write(found, client), true);
    assert.equal((await read()).status?.conditions?.[0]?.reason, "Ours");
  }, { succeeds: () => false }));

test("ExclusiveStatus continues from a valid status of another writer [L39]", async () => {
  const told: unknown[] = [];
  await withNamespace(async ({ client, statuses, read }) => {
    const object = await read();
    statuses.adopt(object);
    object.status = { ...object.status, conditions: [condition("First")] };
    await statuses.write(object, client);
    const change = async (reason: string) => {
      const status = { conditions: [condition(reason)] };
      await client.status.patch(Namespace, KEY, { status });
      return await read();
    };
    const second = await change("Second");
    assert.equal(statuses.adopt(second), false);
    assert.equal(second.status?.conditions?.[0]?.reason, "Second");
    const other = await change("Other");
    assert.equal(statuses.adopt(other), true);
    assert.equal(other.status?.conditions?.[0]?.reason, "Second");
  }, {
    succeeds(found, ours) {
      told.push(ours);
      return JSON.stringify(found).includes("Second");
    },
  });
  assert.equal(told.length, 2);
});
