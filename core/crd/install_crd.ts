import { ApiError, ifFound } from "../api/api_error.ts";
import { untyped } from "../api/kind.ts";
import type { ApplyObject } from "../api/object.ts";
import { type Duration, milliseconds } from "../api/duration.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type { Client } from "../client/client.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import type { WatchEvent } from "../client/watch_events.ts";
import { type Clock, deadline, sleep, systemClock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { jsonEquals } from "../patch/json_value.ts";
import { crdManifest } from "./crd_manifest.ts";
import {
  CRD_KIND,
  crdCondition,
  type CrdManifest,
  type CrdObject,
} from "./crd_object.ts";
import type { DefinedKind } from "./kind_definition.ts";

const RULES: OptionRules<NonNullable<Parameters<typeof installCrd>[2]>> = {
  signal: "signal?",
  timeout: "duration?",
  fieldManager: "manager?",
  clock: "clock?",
  logger: "logger?",
  conversion: "object?",
};

/** Pause between reads in milliseconds, for watches that end immediately. */
const WATCH_PAUSE_MS = 250;
/** Pause between reads of the API discovery, in milliseconds. */
const DISCOVERY_PAUSE_MS = 50;

interface Wait {
  readonly client: Client;
  readonly name: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/**
 * Applies the CustomResourceDefinition of a kind, and waits until the server
 * has accepted its names, serves it and lists it in its API discovery. An
 * identical definition is left unchanged, regardless of its managers; otherwise
 * fields of other managers are taken over, with a warning. The server refuses a
 * definition without a version that objects may be stored in. One that is being
 * deleted counts as installed, with a warning: its objects may have finalizers that
 * only the caller removes.
 *
 * @param client A client with the rights to get, watch and patch
 * CustomResourceDefinitions.
 * @param kind A kind that was created by `defineKind`.
 * @param options The time limit and the field manager.
 * @throws {TypeError | RangeError} If an option is unknown or not valid.
 * @throws {TypeError} If the definition on the server has another scope, which
 * cannot change, or a kind with conversions has no `conversion`.
 * @throws {ApiError} If the server refuses the definition.
 * @throws {Error} If the names are taken, the time limit is exceeded, or the
 * signal aborts.
 */
export async function installCrd(
  client: Client,
  kind: DefinedKind,
  options: {
    /** Signal that aborts the installation. */
    readonly signal?: AbortSignal | undefined;
    /**
     * Longest wait until the server serves the kind, in milliseconds or as
     * text such as `"30s"`.
     *
     * @default {30_000}
     */
    readonly timeout?: Duration | undefined;
    /** Field manager of the definition; defaults to that of the client. */
    readonly fieldManager?: string | undefined;
    /**
     * Clock of the timeout.
     *
     * @default {systemClock}
     */
    readonly clock?: Clock | undefined;
    /** Logger of warnings: fields are taken over, or the definition is being deleted. */
    readonly logger?: Logger | undefined;
    /**
     * Place where the API server calls the operator, to convert between versions
     * with functions; required for such kinds.
     */
    readonly conversion?: WebhookClientConfig | undefined;
  } = {},
): Promise<void> {
  checkOption(client, "object", { name: "client", subject: "installCrd()" });
  checkOptions(options, RULES, "installCrd()");
  const { conversion } = options;
  const manifest = crdManifest(kind, { conversion });
  if (manifest.spec.conversion !== undefined && conversion === undefined) {
    throw new TypeError(
      `Cannot install ${manifest.metadata.name}: its versions are converted by functions, so the API server must know where to call them`,
    );
  }
  await applyCrd(client, manifest, options);
}

/**
 * Applies a CustomResourceDefinition, and waits until the server serves it; see
 * {@linkcode installCrd}.
 *
 * @returns The stored definition.
 */
export async function applyCrd(
  client: Client,
  manifest: CrdManifest,
  options: NonNullable<Parameters<typeof installCrd>[2]>,
): Promise<CrdObject> {
  const { timeout = 30_000, clock = systemClock, fieldManager } = options;
  const limit = milliseconds(timeout, "timeout");
  const { name } = manifest.metadata;
  let last: CrdObject | undefined;
  const install = async (signal: AbortSignal) => {
    const present = await client.find(CRD_KIND, { name }, { signal });
    refuseOtherScope(present, manifest);
    const object = manifest as unknown as ApplyObject<CrdObject>;
    const apply = (force: boolean, dryRun = false) =>
      client.apply(CRD_KIND, object, { force, dryRun, fieldManager, signal });
    // A manager that applied the same, such as Helm, stays its only owner: it
    // could not change fields that it shared.
    const isSame = present !== undefined &&
      isEqual(present, await apply(true, true));
    last = isSame ? present : await apply(false).catch((error) => {
      if (!ApiError.is(error) || !error.isConflict) throw error;
      const text = "Replacing a CustomResourceDefinition of another author";
      const { causes: conflicts } = error.details;
      options.logger?.warn(text, { definition: name, conflicts });
      return apply(true);
    });
    while (!isServed(last)) {
      last = await nextState(last, { client, name, signal, clock });
    }
    await waitUntilDiscovered(client, last, { clock, signal });
    if (last.metadata.deletionTimestamp !== undefined) {
      // No wait: its objects may have finalizers that only this operator removes.
      options.logger?.warn(
        "A CustomResourceDefinition is being deleted: its kind is not served once it is gone, until it is installed again",
        { definition: name },
      );
    }
    return last;
  };
  const tooLate = new Error("Cannot wait any longer");
  try {
    return await deadline(install, limit, {
      clock,
      signal: options.signal,
      onTimeout: () => tooLate,
    });
  } catch (error) {
    const isAborted = options.signal?.aborted === true;
    if (!isAborted && error !== tooLate || ApiError.is(error)) throw error;
    const why = isAborted
      ? "the signal was aborted"
      : `the server did not serve it within ${limit} ms`;
    throw new Error(
      `Cannot install ${name}: ${why}: received conditions ${
        conditionsText(last)
      }`,
      { cause: error },
    );
  }
}

/** Whether two definitions have the same spec, labels and annotations. */
function isEqual(a: CrdObject, b: CrdObject): boolean {
  const content = ({ spec, metadata: { labels, annotations } }: CrdObject) => ({
    spec,
    labels: labels ?? {},
    annotations: annotations ?? {},
  });
  return jsonEquals(content(a), content(b));
}

function refuseOtherScope(
  present: CrdObject | undefined,
  { metadata: { name }, spec }: CrdManifest,
): void {
  const scope = present?.spec.scope;
  if (scope === undefined || scope === spec.scope) return;
  throw new TypeError(
    `Cannot install ${name}: its scope is ${scope} on the server and cannot change; delete it there with all its objects, or define it so: received ${spec.scope}`,
  );
}

/**
 * Whether the server serves the definition.
 *
 * @throws {Error} If the names are taken, so that the server will never serve
 * it.
 */
function isServed(crd: CrdObject): boolean {
  const accepted = crdCondition(crd, "NamesAccepted");
  if (accepted?.status === "False") {
    throw new Error(
      `Cannot install ${crd.metadata.name}: its names are taken: received ${accepted.reason}: ${accepted.message}`,
    );
  }
  return accepted?.status === "True" &&
    crdCondition(crd, "Established")?.status === "True";
}

/**
 * Waits until the API discovery lists the kind of an established definition in
 * all served versions. A Kubernetes API server reports a definition as
 * established before it answers requests for its objects: its handler and its
 * discovery are updated later.
 */
export async function waitUntilDiscovered(
  client: Client,
  { spec: { group, names: { kind }, versions } }: CrdObject,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  for (const version of versions.filter(({ served }) => served)) {
    const served = untyped({ group, version: version.name, kind });
    const resolve = async () => await client.resolve(served);
    while (await ifFound(resolve()) === undefined) {
      await sleep(DISCOVERY_PAUSE_MS, options);
    }
  }
}

/** Waits for the next state of the definition, by a watch or by a read. */
async function nextState(from: CrdObject, wait: Wait): Promise<CrdObject> {
  const { client, name, signal, clock } = wait;
  const changed = await firstChange(from, wait);
  signal.throwIfAborted();
  if (changed?.type === "DELETED") {
    throw new Error(`Cannot install ${name}: it was deleted`);
  }
  if (changed !== undefined) return changed.object;
  await sleep(WATCH_PAUSE_MS, { clock, signal });
  return await client.get(CRD_KIND, { name }, { signal });
}

async function firstChange(
  { metadata: { resourceVersion } }: CrdObject,
  { client, name, signal }: Wait,
): Promise<
  Exclude<WatchEvent<CrdObject>, { readonly type: "BOOKMARK" }> | undefined
> {
  try {
    const fieldSelector = `metadata.name=${name}`;
    const options = { fieldSelector, resourceVersion, signal };
    for await (const change of client.watch(CRD_KIND, options)) return change;
  } catch {
    // The watch has failed; the definition is read instead.
  }
  return undefined;
}

function conditionsText(crd: CrdObject | undefined): string {
  const conditions = crd?.status?.conditions ?? [];
  return conditions.length === 0
    ? "none"
    : conditions.map(({ type, status }) => `${type}=${status}`).join(", ");
}
