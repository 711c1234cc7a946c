import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ApiError,
  applyJsonPatch,
  type JsonPatchOperation,
  type KubernetesObject,
} from "@coracle/operator/client";
import {
  checkFinalizer,
  defaultFinalizer,
  setFinalizer,
} from "../../../core/controller/finalizer.ts";
import { JsonPatchError } from "../../../core/patch/json_patch.ts";

const OURS = "gadgets.example.com/finalizer";
const KIND = {
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
} as const;

function gadget(finalizers?: string[], uid = "1"): KubernetesObject {
  return {
    metadata: {
      namespace: "default",
      name: "a",
      uid,
      resourceVersion: "1",
      ...(finalizers && { finalizers }),
    },
  };
}

/** Server with one object that other clients change before each of our writes. */
class Server {
  object: KubernetesObject | undefined;
  readonly others: (() => void)[];
  patches = 0;
  #version = 1;

  constructor(object: KubernetesObject, ...others: (() => void)[]) {
    this.object = object;
    this.others = others;
  }

  read = () => Promise.resolve(this.object);

  patch = (
    patch: readonly JsonPatchOperation[],
  ): Promise<KubernetesObject> => {
    this.patches++;
    const interfere = this.others.shift();
    interfere?.();
    if (interfere && this.object) {
      this.object.metadata.resourceVersion = `${++this.#version}`;
    }
    try {
      if (this.object === undefined) {
        throw new ApiError("Gone", { status: 404, reason: "NotFound" });
      }
      this.object = applyJsonPatch(this.object, patch) as KubernetesObject;
      return Promise.resolve(this.object);
    } catch (error) {
      if (!(error instanceof JsonPatchError)) return Promise.reject(error);
      const { message } = error;
      return Promise.reject(new ApiError(message, { status: 422 }));
    }
  };
}

function change(
  server: Server,
  isWanted: boolean,
): Promise<KubernetesObject | undefined> {
  return setFinalizer(structuredClone(server.object as KubernetesObject), {
    finalizer: OURS,
    isWanted,
    read: server.read,
    patch: server.patch,
  });
}

test("defaultFinalizer consists of the plural and the group", () => {
  assert.equal(defaultFinalizer(KIND), OURS);
  const service = { ...KIND, group: "", plural: "services" };
  assert.equal(defaultFinalizer(service), "services.coracle.dev/finalizer");
  const deployment = { ...KIND, group: "apps", plural: "deployments" };
  assert.equal(
    defaultFinalizer(deployment),
    "deployments.coracle.dev/finalizer",
  );
});

test("checkFinalizer requires a domain, a slash and a name", () => {
  assert.equal(checkFinalizer(OURS), OURS);
  for (const name of ["finalizer", "a/b", "a.b/", "A.b/c", "a.b/c/d", ""]) {
    assert.throws(() => checkFinalizer(name), /domain, a slash and a name/);
  }
});

test("setFinalizer adds and removes our finalizer and keeps others", async () => {
  const server = new Server(gadget(["other.example.com/x"]));
  await change(server, true);
  assert.deepEqual(server.object?.metadata.finalizers, [
    "other.example.com/x",
    OURS,
  ]);
  await change(server, false);
  assert.deepEqual(server.object?.metadata.finalizers, ["other.example.com/x"]);
  const empty = new Server(gadget());
  await change(empty, true);
  assert.deepEqual(empty.object?.metadata.finalizers, [OURS]);
});

test("setFinalizer succeeds when another finalizer is removed at the same time [CleanupConflictIT]", async () => {
  const server: Server = new Server(
    gadget(["other.example.com/x", OURS]),
    () => server.object = gadget([OURS]),
  );
  await change(server, false);
  assert.equal(server.patches, 2);
  assert.deepEqual(server.object?.metadata.finalizers, []);
});

test("setFinalizer removes no finalizer that has moved to the place of ours", async () => {
  const server: Server = new Server(
    gadget(["other.example.com/x", OURS]),
    () => server.object = gadget([OURS, "third.example.com/y"]),
  );
  await change(server, false);
  assert.deepEqual(server.object?.metadata.finalizers, ["third.example.com/y"]);
});

test("setFinalizer removes an entry that others add meanwhile", async () => {
  const server: Server = new Server(
    gadget([OURS]),
    () => server.object = gadget([OURS, "other.example.com/x", OURS]),
  );
  await change(server, false);
  assert.equal(server.patches, 2);
  assert.deepEqual(server.object?.metadata.finalizers, ["other.example.com/x"]);
});

test("setFinalizer succeeds if the object was deleted or created again [J8]", async () => {
  const gone: Server = new Server(
    gadget([OURS]),
    () => gone.object = undefined,
  );
  assert.equal(await change(gone, false), undefined);
  const anew: Server = new Server(
    gadget([OURS]),
    () => anew.object = gadget([OURS], "2"),
  );
  assert.equal(await change(anew, false), undefined);
  assert.deepEqual(anew.object?.metadata.finalizers, [OURS]);
});

test("setFinalizer adds nothing once the object is being deleted", async () => {
  const deleted = gadget(["other.example.com/x"]);
  deleted.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
  const server: Server = new Server(
    gadget(["other.example.com/x"]),
    () => server.object = deleted,
  );
  assert.equal(await change(server, true), deleted);
  assert.equal(server.patches, 1);
});

test("setFinalizer fails after ten conflicts in a row", async () => {
  let length = 20;
  const interfere = () => {
    const others = Array.from(
      { length: --length },
      (_, i) => `o.example.com/${i}`,
    );
    server.object = gadget([...others, OURS]);
  };
  const server: Server = new Server(
    gadget([...Array(20).fill("o.example.com/x"), OURS]),
    ...Array(20).fill(interfere),
  );
  await assert.rejects(
    change(server, false),
    (error) =>
      ApiError.is(error) && error.isConflict &&
      error.message.endsWith("clients changed the object 10 times in a row"),
  );
  assert.equal(server.patches, 10);
});

test("setFinalizer removes our finalizer of an object that is being deleted", async () => {
  const deleted = gadget([OURS, "other.example.com/x"]);
  deleted.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
  const server = new Server(deleted);
  await change(server, false);
  assert.deepEqual(server.object?.metadata.finalizers, ["other.example.com/x"]);
});

test("setFinalizer passes on an error that is not of the server", async () => {
  const lost = new Error("The connection is lost");
  const server = new Server(gadget([OURS]), () => {
    throw lost;
  });
  await assert.rejects(
    async () => await change(server, false),
    (error) => error === lost,
  );
});

test("checkFinalizer limits the length of the domain", () => {
  const finalizer = (length: number) => `${"a".repeat(length - 6)}.com/x`;
  checkFinalizer(finalizer(316));
  assert.throws(() => checkFinalizer(finalizer(317)), TypeError);
});
