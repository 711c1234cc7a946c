import type { AdmissionReader } from "../admission/admission_webhook.ts";
import { ApiError } from "../api/api_error.ts";
import {
  type Kind,
  kindText,
  type ResolvedKind,
  untyped,
} from "../api/kind.ts";
import { labelRequirements } from "../api/label_selector.ts";
import { namingRule } from "../cache/watch/watch_failure.ts";
import type { Client } from "../client/client.ts";
import { deadline, sleep } from "../clock.ts";
import type { Controller, ControllerDeps } from "../controller/controller.ts";
import {
  type ControllerSettings,
  finalizerOf,
} from "../controller/controller_settings.ts";
import type { NamespaceSet } from "../controller/event_source.ts";
import { namespaceSet } from "../controller/namespaces.ts";
import type { WatchingSource } from "../controller/watch/watch_source.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import type { Logger } from "../logger.ts";
import { type ConcurrencyLimit, pauseAfter } from "../pace.ts";
import { installCrd } from "../crd/install_crd.ts";
import { isDefinedKind } from "../crd/kind_definition.ts";
import type { StartErrorPolicy } from "./operator_options.ts";

/** Controller of any kind, as its operator uses it. */
export type ManagedController =
  & Omit<
    Controller,
    "current" | "kind" | "settings" | "primaries" | "replaying"
  >
  & {
    readonly kind: Kind;
    readonly settings:
      & Pick<
        ControllerSettings,
        | "fieldManager"
        | "takeOver"
        | "finalizer"
        | "install"
        | "isTask"
        | "migrateStorage"
        | "namespaces"
        | "pauseAnnotation"
        | "selection"
        | "usesFinalizer"
      >
      & { readonly workflow?: { toMermaid?(): string } | undefined };
    current(key: string): object | undefined;
  };

/**
 * Reader of objects for admission handlers: from the cache of a controller, else
 * from the server. What a cache does not have is read from the server, since a cache
 * may hold a selection of the objects.
 */
export function admissionReader(
  controllers: () => Iterable<ManagedController>,
  client: Client,
): AdmissionReader {
  const cached = (kind: Kind) =>
    [...controllers()].find((one) => one.cacheOf(kind));
  return {
    async read(kind, key, signal) {
      const cache = cached(kind)?.cacheOf(kind);
      return await cache?.read(kind, key, signal) ??
        await client.find(kind, key, { signal });
    },
    async readList(kind, namespace, signal) {
      const controller = cached(kind);
      const cache = controller?.cacheOf(kind);
      if (cache !== undefined && controller?.cachesAll(kind, namespace)) {
        return await cache.readList(kind, namespace, signal);
      }
      const found = [];
      const all = client.listAll(kind, { namespace, signal });
      for await (const object of all) found.push(object);
      return found;
    },
  };
}

/** Refuses options that need a definition, for kinds that have none. */
export function checkDefinition(
  { name, kind, settings, watchedKinds }: ManagedController,
): void {
  const needing = settings.install && !watchedKinds.some(isDefinedKind)
    ? "install"
    : settings.migrateStorage && !isDefinedKind(kind)
    ? "migrateStorage"
    : undefined;
  if (needing === undefined) return;
  throw new TypeError(
    `Cannot register controller "${name}": only a kind of defineKind carries the definition that "${needing}" needs: received ${kind.kind}`,
  );
}

/** Refuses a controller that another one of the same kind would work against. */
export function checkSameKind(
  { name, kind, settings }: ManagedController,
  other: ManagedController,
): void {
  if (kind.kind !== other.kind.kind || kind.group !== other.kind.group) return;
  const [mine, theirs] = [kind, other.kind].map((one) =>
    isDefinedKind(one) && JSON.stringify(one.versions)
  );
  if (mine && theirs && mine !== theirs) {
    throw new TypeError(
      `Cannot register controller "${name}": its definition of ${kind.kind} would replace that of "${other.name}", so define the kind once`,
    );
  }
  const { group, plural = other.kind.plural ?? "<plural>" } = kind;
  const finalizer = finalizerOf(settings, { group, plural });
  const taken = finalizerOf(other.settings, { group, plural });
  if (!finalizer || finalizer !== taken) return;
  const { namespaces: others } = other.settings;
  const isElsewhere = typeof settings.namespaces === "object" &&
    typeof others === "object" &&
    !settings.namespaces.some((namespace) => others.includes(namespace));
  const [a, b] = [settings, other.settings].map(({ selection }) =>
    JSON.stringify(labelRequirements(selection.labelSelector ?? []))
  );
  if (isElsewhere || a !== b && a !== "[]" && b !== "[]") return;
  throw new TypeError(
    `Cannot register controller "${name}": it and "${other.name}" clean up ${kind.kind} objects with the finalizer ${finalizer}, so set another one with { finalizer }`,
  );
}

export interface ControllerStartDeps {
  readonly deps: ControllerDeps;
  /** Client that installs definitions, even on standby replicas. */
  readonly client: Client;
  readonly startErrors: StartErrorPolicy;
  /** Time limit for the sync of the caches, in milliseconds. */
  readonly syncTimeout: number;
  /** Signal that aborts when the operator stops. */
  readonly signal: AbortSignal;
  /** Controllers of the operator, by name. */
  readonly controllers: ReadonlyMap<string, ManagedController>;
  /** Limit of the checks at the same time. */
  readonly checks: ConcurrencyLimit;
  /** Place of the conversion between versions; undefined if it is not served. */
  readonly conversion?: WebhookClientConfig | undefined;
}

/** What attempts to start depend on that nobody limits. */
type RepeatedStartDeps = Omit<
  ControllerStartDeps,
  "checks" | "startErrors" | "syncTimeout"
>;

/**
 * Dependencies of what runs on each replica, whether it leads or not.
 */
export function unfenced(deps: ControllerDeps): ControllerDeps {
  return {
    ...deps,
    client: deps.unfenced,
    shard: undefined,
    mayRun: () => true,
    isLeading: () => true,
  };
}

/**
 * Most controllers that check at the same time what they may watch: a thousand would
 * open all connections for short requests, which then stay open.
 */
export const MAX_CHECKS = 8;

/** Pauses between attempts to start. */
const PAUSE = { initial: 1_000, max: 30_000 } as const;

/**
 * Starts a controller according to the policy for errors.
 *
 * With `"fail"` it first checks that all kinds can be watched, so that a missing
 * definition or right is reported immediately and by name. With `"wait"` a
 * controller that cannot start is retried until it can, or the operator stops.
 *
 * @returns Resolves when its caches are synced, or when it waits.
 * @throws {Error} If it cannot start and the policy is `"fail"`.
 */
export async function startController(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { startErrors, deps, syncTimeout } = options;
  const start = async () => {
    if (startErrors === "wait") return startWithRetries(controller, options);
    await install(controller, options);
    await options.checks.enter(options.signal);
    try {
      await check(controller, deps);
    } finally {
      options.checks.leave();
    }
    checkWanted(controller, options);
    await controller.start(deps);
  };
  try {
    // A start that takes too long goes on in the background.
    await deadline(start(), syncTimeout, {
      clock: deps.clock,
      onTimeout: () => syncTimeoutError(controller, syncTimeout),
    });
  } catch (error) {
    if (startErrors === "fail" || options.signal.aborted) throw error;
    deps.log.warn("A controller cannot start yet", {
      controller: controller.name,
      error,
    });
  }
}

/**
 * Starts all controllers, including those that are registered while others
 * start. A controller that is unregistered during the start may fail to start.
 *
 * @returns The controllers that it has started.
 */
export async function startAll(
  controllers: ReadonlyMap<string, ManagedController>,
  start: (controller: ManagedController) => Promise<void>,
): Promise<ReadonlySet<ManagedController>> {
  const begun = new Set<ManagedController>();
  for (;;) {
    const late = [...controllers.values()].filter((controller) =>
      !begun.has(controller)
    );
    if (late.length === 0) return begun;
    await Promise.all(late.map(async (controller) => {
      begun.add(controller);
      try {
        await start(controller);
      } catch (error) {
        if (controllers.get(controller.name) === controller) throw error;
      }
    }));
  }
}

/** Starts controllers that were registered after the others; errors are logged. */
export function startLate(
  controllers: readonly ManagedController[],
  start: (controller: ManagedController) => Promise<void>,
  log: Logger,
): void {
  for (const controller of controllers) {
    start(controller).catch((error: unknown) =>
      log.error("Cannot start a controller", {
        controller: controller.name,
        error,
      })
    );
  }
}

/** Checks that the controller is still registered and the operator not stopped. */
function checkWanted(
  controller: ManagedController,
  { signal, controllers }: Pick<ControllerStartDeps, "controllers" | "signal">,
): void {
  signal.throwIfAborted();
  if (controllers.get(controller.name) === controller) return;
  throw new Error(
    `Cannot start controller "${controller.name}": it was unregistered`,
  );
}

/**
 * Starts a controller, again and again until it can.
 *
 * @param onFailure Called with the error of each attempt.
 * @returns Resolves when its caches are synced.
 * @throws The reason of the signal, when the operator stops.
 */
export async function startWithRetries(
  controller: ManagedController,
  options: RepeatedStartDeps,
  onFailure?: (error: unknown) => void,
): Promise<void> {
  const { deps, signal } = options;
  for (let failures = 1;; failures++) {
    try {
      await install(controller, options);
      checkWanted(controller, options);
      await controller.start(deps, { partly: true });
      return;
    } catch (error) {
      checkWanted(controller, options);
      onFailure?.(error);
      const pause = pauseAfter(failures, PAUSE);
      deps.log.warn("A controller cannot start, retrying", {
        controller: controller.name,
        retryIn: pause,
        error,
      });
      await controller.cancelStart();
      await sleep(pause, { clock: deps.clock, signal });
    }
  }
}

/** Applies the definitions of its kinds that any of the controllers installs. */
async function install(
  { isRemote, watchedKinds }: ManagedController,
  { client, controllers, conversion, deps: { clock, log: logger } }:
    RepeatedStartDeps,
): Promise<void> {
  // Those of other clusters are installed there.
  if (isRemote) return;
  const installed = [...controllers.values()]
    .filter((one) => one.settings.install && !one.isRemote)
    .flatMap((one) => one.watchedKinds);
  const watched = new Set(watchedKinds.map(kindText));
  const kinds = installed.filter((kind) => watched.has(kindText(kind)));
  await installCrds(client, kinds, { clock, logger, conversion });
}

/** Applies the CustomResourceDefinitions of those kinds that have one. */
export async function installCrds(
  client: Client,
  kinds: readonly Kind[],
  options: Parameters<typeof installCrd>[2],
): Promise<void> {
  for (const kind of new Set(kinds)) {
    if (isDefinedKind(kind)) await installCrd(client, kind, options);
  }
}

/**
 * Checks that the objects of a controller can be watched: the server must serve
 * all kinds, that of the primaries with the expected scope, and accept lists of
 * them, by this account and field selector. Other failures of lists of secondaries
 * are left to their informers, which retry.
 *
 * @throws {Error} If a kind cannot be watched; the error says what to do.
 */
async function check(
  { kind, isJob, isRemote, settings, watching }: ManagedController,
  deps: ControllerDeps,
): Promise<void> {
  if (isRemote) return;
  const { client, namespaces, currentNamespace } = deps;
  for (const other of watching) await servedKind(client, other.kind);
  const wanted = namespaceSet(
    settings.namespaces ?? namespaces,
    currentNamespace,
    isJob ? { kind: kind.kind } : kind,
  );
  if (!isJob) {
    const served = await servedKind(client, kind);
    if (kind.scope !== undefined && kind.scope !== served.scope) {
      throw new TypeError(
        `Cannot watch ${
          kindText(kind)
        }: the server serves it with another scope, so change the definition of the kind or of its CustomResourceDefinition: received ${kind.scope} for ${served.scope}`,
      );
    }
    const { labelSelector, fieldSelector, shardSelector } = settings.selection;
    const isWhole = !labelSelector && !fieldSelector && !shardSelector;
    await checkRight(
      deps,
      { kind, selection: {}, watchesAll: isWhole },
      wanted,
    );
  }
  const different = new Map(watching.map((one) => {
    const { kind, selection: { fieldSelector, namespaces } } = one;
    return [JSON.stringify([kindText(kind), fieldSelector, namespaces]), one];
  }));
  for (const one of different.values()) {
    await checkRight(deps, one, wanted).catch((error: Error) => {
      const { status } = (error.cause ?? error) as Partial<ApiError>;
      if (status === 400 || status === 403) throw error;
    });
  }
}

type CheckedWatch = Pick<
  WatchingSource<never>,
  "kind" | "selection" | "watchesAll"
>;

/**
 * Checks that the account may list objects, and notes how many there are: the server
 * counts those of a list without selectors.
 */
async function checkRight(
  { client, informers }: Pick<ControllerDeps, "client" | "informers">,
  { kind, selection, watchesAll }: CheckedWatch,
  inherited: NamespaceSet,
): Promise<void> {
  const { fieldSelector, namespaces = "inherited" } = selection;
  const served = await client.resolve(kind);
  const wanted = namespaces === "inherited" ? inherited : namespaces;
  const places = wanted === "all" || served.scope === "Cluster"
    ? [undefined]
    : wanted;
  for (const namespace of places) {
    try {
      const { items, metadata } = await client.list(kind, {
        namespace,
        fieldSelector,
        limit: 1,
      });
      const { continue: more, remainingItemCount } = metadata ?? {};
      const left = more ? remainingItemCount : 0;
      if (watchesAll && left !== undefined) {
        informers.expect(kind, namespace, items.length + left);
      }
    } catch (error) {
      throw namingRule(error, served, namespace);
    }
  }
}

async function servedKind(client: Client, kind: Kind): Promise<ResolvedKind> {
  const { group, version } = kind;
  try {
    return await client.resolve(untyped({ group, version, kind: kind.kind }));
  } catch (error) {
    if (!ApiError.is(error) || !error.isNotFound) throw error;
    throw new Error(
      `Cannot watch ${
        kindText(kind)
      }: the server does not serve it, so install its CustomResourceDefinition first${
        isDefinedKind(kind)
          ? ", or let the operator do it with { install: true }"
          : ""
      }`,
      { cause: error },
    );
  }
}

/** Error for caches that do not sync in time, with the first error of a watch. */
function syncTimeoutError(
  controller: ManagedController,
  timeout: number,
): Error {
  const { informers, sources } = controller.health();
  const error = [
    ...informers.flatMap(({ watches }) =>
      watches.map(({ lastError }) => lastError?.message)
    ),
    ...Array.from(sources.values(), ({ message }) => message),
    informers.length === 0 ? "no kind that the server serves" : undefined,
  ].find((message) => message !== undefined);
  return new Error(
    `Cannot start controller "${controller.name}": its caches (${
      kindText(controller.kind)
    } and its event sources) were not synced within ${timeout} ms${
      error === undefined ? "" : `: received ${error}`
    }`,
  );
}
