/**
 * Creates Greetings, in a process of its own, and prints after how many
 * milliseconds each had its status: `greeting_load.ts`. First one after the
 * other, then many at once.
 *
 * @module
 */
import process from "node:process";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import { clusterClient } from "./api_cluster.ts";
import { Greeting, greetingText } from "./greeting.ts";

const WARM_UP = 50;
const ONE_BY_ONE = 300;
const STORM = 1_000;
/** Number of concurrent creates. */
const STORM_CREATES = 20;

/** Callbacks that wait for the status of a Greeting, by name. */
const waiting: Map<string, () => void> = new Map();

async function watch(client: Client, from: string): Promise<never> {
  // A server ends the watch of a slow reader, and all readers are slow on a
  // busy machine: the watch resumes from there.
  for (let resourceVersion = from;;) {
    const events = client.watch(Greeting, {
      namespace: "default",
      resourceVersion,
    });
    for await (const { type, object } of events) {
      resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
      if (type !== "MODIFIED") continue;
      if (object.status?.text !== greetingText(object.spec)) continue;
      waiting.get(keyText(keyOf(object)))?.();
    }
  }
}

/** Creates a Greeting and waits for its status. */
function greet(client: Client, name: string): {
  readonly created: Promise<unknown>;
  /** Milliseconds until its status was seen. */
  readonly greeted: Promise<number>;
} {
  const start = performance.now();
  const greeted = new Promise<number>((resolve) =>
    waiting.set(
      `default/${name}`,
      () => resolve(performance.now() - start),
    )
  );
  const created = client.create(Greeting, {
    metadata: { name, namespace: "default" },
    spec: { name },
  });
  return { created, greeted };
}

async function oneByOne(client: Client): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < WARM_UP + ONE_BY_ONE; i++) {
    const { created, greeted } = greet(client, `one-${i}`);
    await created;
    times.push(await greeted);
  }
  return times.slice(WARM_UP);
}

async function storm(client: Client): Promise<number[]> {
  const times: Promise<number>[] = [];
  const user = async () => {
    while (times.length < STORM) {
      const { created, greeted } = greet(client, `storm-${times.length}`);
      times.push(greeted);
      await created;
    }
  };
  await Promise.all(Array.from({ length: STORM_CREATES }, user));
  return await Promise.all(times);
}

const client = await clusterClient();
const { resourceVersion = "" } =
  (await client.list(Greeting, { namespace: "default" })).metadata;
void watch(client, resourceVersion);
const single = await oneByOne(client);
const start = performance.now();
const many = await storm(client);
const seconds = (performance.now() - start) / 1000;
await client.deleteCollection(Greeting, { namespace: "default" });
const measured = { single, many, perSecond: STORM / seconds };
process.stdout.write(`${JSON.stringify(measured)}\n`, () => process.exit(0));
