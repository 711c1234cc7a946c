import {
  type Kind,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import { type CrdManifest, crdManifest } from "@coracle/operator/crd";
import type { OperatorSource } from "../check/operator_source.ts";
import { resourceKey } from "../../apiserver/storage/store.ts";
import { World } from "../check/world.ts";
import { Fights } from "./fights.ts";
import { fieldDifferences } from "./field_changes.ts";
import { PlanRecord } from "./plan_record.ts";
import type { PlannedFetch, PlannedFight } from "./plan_report.ts";
import { plannedWebhooks } from "./planned_webhooks.ts";
import { SecretTexts } from "@coracle/operator/internal";
import type { Snapshot } from "./snapshot.ts";

/** Virtual time without a change after which an operator is at rest. */
const STILL_MS = 5 * 60_000;
/** Virtual time of a step after an operator has come to rest. */
const STEP_MS = 60_000;
/** Requests, events and timers of the time after the rest, beyond those before it. */
const IDLE_ACTIONS = 20_000;
const SECRETS = "/secrets";
const realFetch = globalThis.fetch;

/** Kind without its version. */
export type AnyVersion = Pick<Kind, "group" | "kind">;

/** Settings of {@linkcode runOperator}. */
export interface RunSettings {
  /** Longest virtual time in milliseconds. */
  readonly duration: number;
  /** Hosts to which requests are sent really. */
  readonly hosts: readonly string[];
  /** Most requests and events until the operator is at rest; by default many. */
  readonly actions?: number | undefined;
}

/** Object whose fields a changed definition drops or fills in. */
export interface ServedObject {
  readonly before: UntypedObject;
  readonly after: UntypedObject;
}

/** What an operator did on the copy of a cluster. */
export interface PlannedRun {
  readonly record: PlanRecord;
  readonly fetches: readonly PlannedFetch[];
  /** Virtual time in milliseconds. */
  readonly duration: number;
  readonly quiet: boolean;
  readonly fights: readonly PlannedFight[];
  /** Kinds of the server by `GROUP/PLURAL`. */
  readonly kinds: ReadonlyMap<string, AnyVersion>;
  /** Texts that must not be printed. */
  readonly secrets: SecretTexts;
  /** Objects that a changed definition serves in another way, without a write. */
  readonly served: readonly ServedObject[];
  /** Kinds whose definitions the cluster does not have. */
  readonly undefinedKinds: readonly string[];
  /** Kinds whose definitions differ from those of the operator. */
  readonly otherDefinitions: readonly string[];
}

/** Runs an operator until it is quiet. */
export async function runOperator(
  source: OperatorSource,
  isOld: boolean,
  snapshot: Snapshot,
  { duration, hosts, actions }: RunSettings,
): Promise<PlannedRun> {
  const secrets = new SecretTexts();
  const record = new PlanRecord(secrets);
  const fetches = new Fetches(hosts);
  const { definitions, info } = snapshot;
  for (const { object } of snapshot.objects(SECRETS)) secrets.add(object);
  const objects = info.resources.reduce((sum, { objects }) => sum + objects, 0);
  const missing = source.kinds.filter(({ plural, group }) =>
    !definitions.has(`${plural}.${group}`)
  );
  let fights: Fights | undefined;
  const world = await World.start({
    seed: 1,
    content: snapshot.content((one) => converting(one, source)),
    startAt: info.at,
    kinds: missing,
    webhooks: plannedWebhooks(source, snapshot),
    endpoints: false,
    sink: record,
    onChange: (change) => {
      record.change(change);
      fights?.change(change);
    },
    fetch: (request) => fetches.send(request),
    refuse: (address) => fetches.refuse(address),
    fetchesReally: true,
    maxActions: actions ?? 200_000 + 40 * objects,
    load: (start) => source.load(start, isOld),
  });
  try {
    const state = await world.quiet({
      within: duration,
      still: Math.min(STILL_MS, duration),
    });
    if (state === "quiet") world.allow(world.actions + IDLE_ACTIONS);
    while (world.now < duration && !world.isExhausted) {
      await world.advance(Math.min(STEP_MS, duration - world.now));
    }
    record.end();
    const { now } = world;
    const served = await servedOtherwise(world, { record, snapshot });
    const kinds = new Map<string, AnyVersion>();
    world.allow(IDLE_ACTIONS);
    for (
      const { group, plural, kind } of await world.complete(
        world.client.resources(),
      )
    ) {
      kinds.set(`${group}/${plural}`, { group, kind });
    }
    fights = new Fights(world, record);
    return {
      record,
      fetches: fetches.found(),
      duration: now,
      quiet: state === "quiet",
      fights: await fights.found(),
      kinds,
      secrets,
      served,
      undefinedKinds: missing.map(({ kind }) => kind),
      otherDefinitions: source.kinds.filter((kind) =>
        isOther(definitions.get(`${kind.plural}.${kind.group}`), kind)
      ).map(({ kind }) => kind),
    };
  } finally {
    await world.end();
  }
}

/** Objects that nobody writes and that are served in another way than before. */
async function servedOtherwise(
  world: World,
  { record, snapshot }: {
    readonly record: PlanRecord;
    readonly snapshot: Snapshot;
  },
): Promise<readonly ServedObject[]> {
  const found: ServedObject[] = [];
  for (const { write, before, after } of [...record.touched.values()]) {
    if (write === undefined || after === undefined) continue;
    const name = before?.name ?? "";
    if (!snapshot.definitions.has(name)) continue;
    const { spec } = after.parse() as object as CrdManifest;
    const { group, names: { plural } } = spec;
    for (const { object } of snapshot.objects(resourceKey({ group, plural }))) {
      const { apiVersion = "", kind = "", metadata } = object;
      const { namespace, name } = metadata;
      const key = namespace ? `${namespace}/${name}` : name;
      if (record.touched.has(`${group}/${plural} ${key}`)) continue;
      const version = apiVersion.split("/").at(-1) ?? "";
      world.allow(IDLE_ACTIONS);
      const now = await world.complete(
        world.client.find(untyped({ group, version, kind }), metadata),
      );
      if (now !== undefined && fieldDifferences(object, now).length > 0) {
        found.push({ before: object, after: now });
      }
    }
  }
  return found;
}

type DefinedKinds = OperatorSource["kinds"];

/** Whether the schemas of a definition differ from those of a kind. */
function isOther(
  definition: UntypedObject | undefined,
  kind: DefinedKinds[number],
): boolean {
  if (definition === undefined) return false;
  const properties = ({ spec }: Pick<CrdManifest, "spec">) =>
    JSON.stringify(
      spec.versions.map(({ name, schema }) => [name, fieldsOf(schema)]).sort(),
    );
  return properties(definition as object as CrdManifest) !==
    properties(crdManifest(kind));
}

/** Names of the fields of a schema, in order: a server completes the rest. */
function fieldsOf(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return undefined;
  const { openAPIV3Schema, properties, items, type, enum: values } =
    schema as Record<string, unknown>;
  if (openAPIV3Schema !== undefined) return fieldsOf(openAPIV3Schema);
  const fields = Object.entries(properties as object ?? {})
    .filter(([name]) => !/^(?:apiVersion|kind|metadata)$/.test(name))
    .map(([name, field]) => [name, fieldsOf(field)]);
  return [type, values, fieldsOf(items), fields.sort()];
}

/** Definition without the conversion of others, which nobody calls. */
function converting(
  object: UntypedObject,
  { kinds }: OperatorSource,
): UntypedObject {
  const spec = object["spec"] as CrdManifest["spec"];
  const isOurs = kinds.some(({ plural, group, conversion }) =>
    conversion !== undefined && `${plural}.${group}` === object.metadata.name
  );
  if (spec.conversion?.strategy !== "Webhook" || isOurs) return object;
  return { ...object, spec: { ...spec, conversion: { strategy: "None" } } };
}

/** Requests outside of the cluster: held back, unless their host is allowed. */
class Fetches {
  readonly #hosts: ReadonlySet<string>;
  readonly #found: Map<string, { count: number; sent: boolean }> = new Map();

  /** Number of requests in progress by address. */
  readonly #sending: Map<string, number> = new Map();

  constructor(hosts: readonly string[]) {
    this.#hosts = new Set(hosts);
  }

  async send(request: Request): Promise<Response> {
    const { hostname, port, protocol, origin, pathname } = new URL(request.url);
    const address = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
    const shown = `${request.method} ${origin}${pathname}`;
    if (this.#lets(address, shown)) {
      const sending = (change: number) =>
        this.#sending.set(address, (this.#sending.get(address) ?? 0) + change);
      sending(1);
      return await realFetch(request).finally(() => sending(-1));
    }
    // deno-lint-ignore coracle/error-message -- as the runtimes word it
    throw new TypeError("fetch failed", {
      cause: heldBack("send", shown, hostname),
    });
  }

  /** Why a connection is held back; undefined if it may go. */
  refuse(address: string): Error | undefined {
    // The fetch of Node opens its connections like everybody else.
    if ((this.#sending.get(address) ?? 0) > 0) return undefined;
    if (this.#lets(address, `CONNECT ${address}`)) return undefined;
    return heldBack("connect to", address, hostOf(address));
  }

  #lets(address: string, shown: string): boolean {
    const sent = this.#hosts.has(address) || this.#hosts.has(hostOf(address));
    const known = this.#found.get(shown) ?? { count: 0, sent };
    this.#found.set(shown, { count: known.count + 1, sent });
    return sent;
  }

  found(): readonly PlannedFetch[] {
    return Array.from(
      this.#found,
      ([request, found]) => ({ request, ...found }),
    );
  }
}

function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

function heldBack(action: string, target: string, host: string): Error {
  return new Error(
    `Cannot ${action} ${target}: a plan holds back what leaves the cluster; --allow-fetch ${host} lets it go`,
  );
}
