/**
 * Operators to check: functions, and files that create operators.
 *
 * @module
 */
import { resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import {
  Client,
  type Kind,
  silentLogger,
  systemClock,
} from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import type { CrdManifest, DefinedKind } from "@coracle/operator/crd";
import {
  host,
  isDefinedKind,
  isResolved,
  type JsonObject,
  replaceHost,
} from "@coracle/operator/internal";
import { kindFromCrd } from "../kind_from_crd.ts";
import { shellText } from "../shell_text.ts";
import { exportedOperators, type Exports } from "./exported_operators.ts";
import { importFresh } from "./fresh_modules.ts";
import { loadError } from "./load_error.ts";
import type { CheckOptions } from "../check_options.ts";
import type {
  OperatorCluster,
  StartedOperator,
  WorldStart,
} from "./world_options.ts";
import { replaceFetch, unconnected } from "./world_globals.ts";
import { replaceServers } from "./world_servers.ts";
import { replaceSockets } from "./world_sockets.ts";

/** Source of an operator that creates any number of instances. */
export interface OperatorSource {
  /** Path of the operator file; undefined for a function. */
  readonly file: string | undefined;
  /** Kinds to install before the operator starts. */
  readonly kinds: readonly DefinedKind[];
  readonly primaries: readonly Kind[];
  /** Operators of the first load, which do not run. */
  readonly operators: readonly Partial<OperatorHandle>[];
  /** Primaries that are neither built in nor among the kinds to install. */
  readonly unserved: readonly Kind[];
  /** Whether the operator elects a leader. */
  readonly elects: boolean;
  /** Whether the operator has webhooks. */
  readonly admits: boolean;
  /** Returns the kind of a resource, by its group and plural. */
  kindOf(group: string, resource: string): string;
  /**
   * Creates a new instance of the operator.
   *
   * @param isOld Whether to load the older build.
   */
  load(start: WorldStart, isOld: boolean): Promise<StartedOperator | undefined>;
}

/**
 * Determines the kinds and settings of an operator, without running it.
 *
 * @param given The operator.
 * @param options.kinds Further kinds to install.
 * @param options.definitions CustomResourceDefinitions; those of kinds that the
 * operator watches and does not define are installed.
 * @param options.from File of an older build.
 * @param options.export Name of the export that is the operator.
 * @throws {TypeError} If a file creates no operator.
 */
export async function operatorSource(
  given: CheckOptions["operator"],
  options: Pick<CheckOptions, "kinds" | "from" | "externals"> & {
    readonly definitions?: readonly JsonObject[] | undefined;
    readonly export?: string | undefined;
  } = {},
): Promise<OperatorSource> {
  const file = typeof given === "function" ? undefined : pathOf(given);
  const idle: OperatorCluster = {
    client: new Client({ transport: NOWHERE }, { retry: false }),
    clock: systemClock,
    logger: silentLogger,
    namespaces: "all",
  };
  const described = typeof given === "function"
    ? { operators: [given(idle) as Partial<OperatorHandle>], exports: {} }
    : await describe(file!, idle, options);
  const controllers = described.operators.flatMap((one) =>
    one.controllers ?? []
  );
  const registered = controllers.flatMap((one) => [
    ...one.isJob ? [] : [one.kind],
    ...one.secondaryKinds,
    ...one.readOnlyKinds,
  ]);
  const exported = Object.values(described.exports).filter((
    value,
  ): value is Kind =>
    typeof value === "object" && value !== null && "kind" in value
  );
  const all = [...options.kinds ?? [], ...registered, ...exported];
  const defined = [...new Set(all)].filter((kind): kind is DefinedKind =>
    isDefinedKind(kind)
  );
  const primaries = [
    ...new Set(controllers.flatMap((one) => one.isJob ? [] : [one.kind])),
  ];
  const { builtinDefinitions } = await import(
    "../../apiserver/builtin/builtin_definitions.ts"
  );
  const builtIn = builtinDefinitions();
  const unserved = [...new Set(registered)].filter((kind) =>
    ![...builtIn, ...defined].some((known) =>
      known.group === kind.group && known.kind === kind.kind
    )
  );
  const definitionOf = (kind: Kind) =>
    options.definitions?.find((one) => isDefinitionOf(one, kind));
  const kinds = [
    ...defined,
    ...unserved.flatMap((kind) => {
      const definition = definitionOf(kind);
      return definition === undefined
        ? []
        : [kindFromCrd(definition, kind.version)];
    }),
  ];
  const names = new Map(
    [...builtIn, ...[...registered, ...kinds].filter(isResolved)]
      .map(({ group, plural, kind }) => [`${group}/${plural}`, kind]),
  );
  const from = options.from === undefined ? undefined : pathOf(options.from);
  return {
    file,
    kinds: [
      ...new Map(kinds.map((kind) => [`${kind.plural}.${kind.group}`, kind]))
        .values(),
    ],
    primaries,
    operators: described.operators,
    unserved: primaries.filter((kind) =>
      unserved.includes(kind) && definitionOf(kind) === undefined
    ),
    elects: described.operators.some((one) =>
      one.settings?.leaderElection !== undefined
    ),
    admits: described.operators.some((one) =>
      one.settings?.webhooks !== undefined
    ),
    kindOf: (group, resource) => names.get(`${group}/${resource}`) ?? resource,
    load: async (start, isOld) =>
      typeof given === "function"
        ? given(start.cluster)
        : await loadFile(isOld ? from ?? file! : file!, {
          start,
          name: options.export,
        }),
  };
}

/** Whether an object is the CustomResourceDefinition of a kind. */
export function isDefinitionOf(object: JsonObject, kind: Kind): boolean {
  const { spec } = object as Partial<CrdManifest>;
  return object["kind"] === "CustomResourceDefinition" &&
    spec?.group === kind.group && spec.names?.kind === kind.kind;
}

export function pathOf(given: string | URL): string {
  if (given instanceof URL) return fileURLToPath(given);
  return given.startsWith("file:") ? fileURLToPath(given) : resolve(given);
}

/** Path of a file as a user types it in a shell, from the current folder. */
export function shownPath(given: string | URL): string {
  const [path, here] = [pathOf(given), `${process.cwd()}/`];
  const shown = path.startsWith(here) ? path.slice(here.length) : path;
  return shellText(shown);
}

const NOWHERE = {
  send: () =>
    Promise.reject(
      new Error("Cannot send a request: the operator does not run yet"),
    ),
  close: () => Promise.resolve(),
};

async function describe(
  file: string,
  cluster: OperatorCluster,
  { export: name, externals }: Pick<CheckOptions, "externals"> & {
    readonly export?: string | undefined;
  },
): Promise<{
  readonly operators: readonly Partial<OperatorHandle>[];
  readonly exports: Exports;
}> {
  const made: OperatorHandle[] = [];
  const restoreHost = replaceHost({
    operators: {
      runs: false,
      logger: silentLogger,
      made: (operator) => void made.push(operator),
    },
  });
  const restoreFetch = replaceFetch(externals);
  const restoreServers = replaceServers();
  const restoreSockets = replaceSockets({ refuse: unconnected });
  try {
    const exports = await importFresh(file).catch((error) => {
      throw loadError(file, error);
    });
    const { operators, received } = await exportedOperators(exports, {
      made,
      name,
      argument: cluster,
    });
    if (operators.length > 0) return { operators, exports };
    throw new TypeError(
      `Cannot load ${file}: ${
        name === undefined
          ? 'it creates no operator: export an Operator, or a function "operator" that returns one, or name the export by --export'
          : "--export must name an Operator or a function that returns one"
      }: received ${received}`,
    );
  } finally {
    restoreFetch();
    restoreSockets();
    restoreServers();
    restoreHost();
  }
}

/** Loads an operator file with fresh modules, in a simulation. */
async function loadFile(
  file: string,
  { start: { cluster, made }, name }: {
    readonly start: WorldStart;
    readonly name: string | undefined;
  },
): Promise<StartedOperator | undefined> {
  const { operators: tool } = host();
  const begun = Promise.withResolvers<undefined>();
  const started = new Set<OperatorHandle>();
  const restoreHost = tool && replaceHost({
    operators: {
      ...tool,
      starting(operator) {
        started.add(operator);
        begun.resolve(undefined);
        return Promise.resolve();
      },
    },
  });
  // A file that awaits `operator.run()` is evaluated when the operator has ended.
  const evaluated = importFresh(file);
  evaluated.catch(() => {}); // A killed process may fail later.
  try {
    const exports = await Promise.race([evaluated, begun.promise]);
    if (exports === undefined) return undefined;
    const { operators } = await exportedOperators(exports, {
      made,
      name,
      argument: cluster,
    });
    const waiting = operators.filter((operator) => !started.has(operator));
    return {
      async start() {
        await Promise.all(waiting.map((operator) => operator.start()));
      },
    };
  } finally {
    restoreHost?.();
  }
}
