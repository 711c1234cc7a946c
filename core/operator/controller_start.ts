import { ApiError } from "../api/api_error.ts";
import {
  apiVersionOf,
  type Kind,
  kindText,
  type ResolvedKind,
  untyped,
} from "../api/kind.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import { type Clock, deadline, sleep } from "../clock.ts";
import type {
  ControllerHealth,
  ObjectHistory,
} from "../controller/controller.ts";
import type { ControllerDeps } from "../controller/controller.ts";
import type { ControllerSettings } from "../controller/controller_options.ts";
import type { NamespaceSet } from "../controller/event_source.ts";
import { namespaceSet } from "../controller/namespaces.ts";
import { installCrd } from "../crd/install_crd.ts";
import { isDefinedKind } from "../crd/kind_definition.ts";
import type { StartErrorPolicy } from "./operator_options.ts";

/** A controller of any kind, as its operator uses it. */
export interface ManagedController {
  readonly name: string;
  readonly kind: Kind;
  readonly settings: Pick<
    ControllerSettings,
    "fieldManager" | "install" | "namespaces" | "usesFinalizer"
  >;
  /** Kinds of its secondary resources, from its event sources. */
  readonly secondaryKinds: readonly Kind[];
  /** Kinds that it only watches. */
  readonly readOnlyKinds: readonly Kind[];
  /** Kinds that it watches in the cluster of the operator, its primaries first. */
  readonly watchedKinds: readonly Kind[];
  /** Keys of the objects that run. */
  readonly runningKeys: readonly string[];
  start(
    deps: ControllerDeps,
    options?: { readonly partly?: boolean | undefined },
  ): Promise<void>;
  startLeading(): void;
  stopLeading(): void;
  releaseShard(): Promise<void>;
  acquireShard(wasOwned: (key: string) => boolean): void;
  pause(): void;
  abort(): void;
  whenIdle(): Promise<void>;
  cancelStart(): Promise<void>;
  stop(): Promise<void>;
  health(): ControllerHealth;
  why(key: ObjectKey | string): ObjectHistory | undefined;
}

/** Dependencies of {@linkcode startController}. */
export interface ControllerStartDeps {
  readonly deps: ControllerDeps;
  /** Client that installs definitions, on standby replicas as well. */
  readonly client: Client;
  readonly startErrors: StartErrorPolicy;
  /** Time limit for the sync of the caches, in milliseconds. */
  readonly syncTimeout: number;
  /** Signal that aborts when the operator stops. */
  readonly signal: AbortSignal;
  /** Controllers of the operator, by name. */
  readonly controllers: ReadonlyMap<string, ManagedController>;
}

/** Pauses between attempts to start, doubled each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Starts a controller by the policy for errors.
 *
 * With `"fail"` it first checks that the kind can be watched, so that a missing
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
  const { startErrors, deps } = options;
  try {
    if (startErrors === "fail") {
      await install(controller, options);
      await check(controller, deps);
      checkWanted(controller, options);
    }
    await startInTime(controller, options);
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
 * @param controllers The controllers by name.
 * @param start Starts one controller.
 */
export async function startAll(
  controllers: ReadonlyMap<string, ManagedController>,
  start: (controller: ManagedController) => Promise<void>,
): Promise<void> {
  const begun = new Set<ManagedController>();
  for (;;) {
    const late = [...controllers.values()].filter((controller) =>
      !begun.has(controller)
    );
    if (late.length === 0) return;
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

/** Checks that the controller is still registered and the operator not stopped. */
function checkWanted(
  controller: ManagedController,
  { signal, controllers }: ControllerStartDeps,
): void {
  signal.throwIfAborted();
  if (controllers.get(controller.name) === controller) return;
  throw new Error(
    `Cannot start controller "${controller.name}": it was unregistered`,
  );
}

async function check(
  { kind, settings, watchedKinds }: ManagedController,
  deps: ControllerDeps,
): Promise<void> {
  for (const other of watchedKinds.slice(1)) {
    await servedKind(deps.client, other);
  }
  const { scope = "Namespaced" } = kind;
  await checkWatchable(
    deps.client,
    kind,
    namespaceSet(
      settings.namespaces ?? deps.namespaces,
      deps.currentNamespace,
      { scope, kind: kind.kind },
    ),
  );
}

/** Starts a controller; a start that takes too long goes on in the background. */
async function startInTime(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { deps, syncTimeout, startErrors } = options;
  const started = startErrors === "fail"
    ? controller.start(deps)
    : startWithRetries(controller, options);
  await deadline(started, syncTimeout, {
    clock: deps.clock,
    onTimeout: () =>
      syncTimeoutError(controller, syncTimeout, lastError(controller)),
  });
}

async function startWithRetries(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { deps, signal } = options;
  for (
    let pause = FIRST_PAUSE_MS;;
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
  ) {
    try {
      await install(controller, options);
      checkWanted(controller, options);
      await controller.start(deps, { partly: true });
      return;
    } catch (error) {
      checkWanted(controller, options);
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

/** Applies the CustomResourceDefinitions if the option `install` is set. */
async function install(
  { watchedKinds, settings }: ManagedController,
  { client, deps: { clock } }: ControllerStartDeps,
): Promise<void> {
  if (settings.install) await installCrds(client, watchedKinds, { clock });
}

/** Applies the CustomResourceDefinitions of those kinds that have one. */
export async function installCrds(
  client: Client,
  kinds: readonly Kind[],
  options: { readonly clock: Clock },
): Promise<void> {
  for (const kind of new Set(kinds)) {
    if (isDefinedKind(kind)) await installCrd(client, kind, options);
  }
}

function lastError(controller: ManagedController): string | undefined {
  const { informers, sources } = controller.health();
  const errors = [
    ...informers.flatMap(({ watches }) =>
      watches.map((watch) => watch.lastError?.message)
    ),
    ...[...sources.values()].map(({ message }) => message),
  ];
  return errors.find((message) => message !== undefined);
}

/**
 * Checks that a kind can be watched: the server must serve it with the expected
 * scope, and the account must be allowed to list it.
 *
 * @param client A client for the cluster.
 * @param kind The kind of the controller.
 * @param namespaces The namespaces to watch.
 * @throws {Error} If the kind cannot be watched; the error says what to do.
 */
async function checkWatchable(
  client: Client,
  kind: Kind,
  namespaces: NamespaceSet,
): Promise<void> {
  const served = await servedKind(client, kind);
  if (kind.scope !== undefined && kind.scope !== served.scope) {
    throw new TypeError(
      `Cannot watch ${
        kindText(kind)
      }: the server serves it with another scope, so change the definition of the kind or of its CustomResourceDefinition: received ${kind.scope} for ${served.scope}`,
    );
  }
  const places = namespaces === "all" || served.scope === "Cluster"
    ? [undefined]
    : namespaces;
  for (const namespace of places) {
    try {
      await client.list(kind, { namespace, limit: 1 });
    } catch (error) {
      if (!ApiError.is(error) || !error.isForbidden) throw error;
      throw new Error(
        `Cannot watch ${kindText(kind)}${
          namespace === undefined ? "" : ` in namespace ${namespace}`
        }: the right is missing, so give the operator's account ${
          namespace === undefined ? "a ClusterRole" : "a Role"
        } with ${ruleText(served)}: received ${error.message}`,
        { cause: error },
      );
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
      }: the server does not serve it, so install its CustomResourceDefinition first, or let the operator do it with { install: true }: received ${error.message}`,
      { cause: error },
    );
  }
}

/** Rule of a role that allows to watch a kind. */
function ruleText({ group, plural }: ResolvedKind): string {
  return `{ apiGroups: ["${group}"], resources: ["${plural}"], verbs: ["get", "list", "watch"] }`;
}

/** Error for caches that do not sync in time. */
function syncTimeoutError(
  controller: { readonly name: string; readonly kind: Kind },
  timeout: number,
  lastError: string | undefined,
): Error {
  return new Error(
    `Cannot start controller "${controller.name}": its caches (${
      apiVersionOf(controller.kind)
    } ${controller.kind.kind} and its event sources) were not synced within ${timeout} ms${
      lastError === undefined ? "" : `: received ${lastError}`
    }`,
  );
}
