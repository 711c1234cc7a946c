/**
 * Kubeconfig files: reading, checking and merging. Field names are those of
 * kubectl; unknown fields are ignored.
 *
 * @module
 */
import { dirname, isAbsolute, resolve } from "node:path";
import { fileFault, readLimited } from "./limited_file.ts";

/**
 * Shape of a value: a type, a required string, one constant text, a list, or an
 * object with optional fields.
 */
type Shape =
  | "any"
  | "boolean"
  | "string"
  | "string!"
  | "Config"
  | "v1"
  | List
  | Fields;
type List = readonly [Shape];
interface Fields {
  readonly [name: string]: Shape;
}

/** Type of the values of a shape. */
type ValueOf<S> = S extends "boolean" ? boolean
  : S extends "any" ? unknown
  : S extends string ? string
  : S extends readonly [infer Item] ? readonly ValueOf<Item>[]
  : S extends { readonly "*": infer Value }
    ? Readonly<Record<string, ValueOf<Value>>>
  :
    & { readonly [Name in keyof S]?: ValueOf<S[Name]> | undefined }
    & {
      readonly [
        Name in keyof S as S[Name] extends "string!" ? Name : never
      ]: string;
    };

const EXEC = {
  apiVersion: "string",
  command: "string",
  args: ["string"],
  env: [{ name: "string!", value: "string!" }],
  installHint: "string",
  provideClusterInfo: "boolean",
  interactiveMode: "string",
} as const;

const USER = {
  "client-certificate": "string",
  "client-certificate-data": "string",
  "client-key": "string",
  "client-key-data": "string",
  token: "string",
  tokenFile: "string",
  username: "string",
  password: "string",
  as: "string",
  "as-uid": "string",
  "as-groups": ["string"],
  "as-user-extra": { "*": ["string"] },
  "auth-provider": { name: "string" },
} as const;

const CLUSTER = {
  server: "string",
  "certificate-authority": "string",
  "certificate-authority-data": "string",
  "tls-server-name": "string",
  "insecure-skip-tls-verify": "boolean",
  "proxy-url": "string",
  extensions: [{ name: "string!", extension: "any" }],
} as const;

const CONTEXT = {
  cluster: "string",
  user: "string",
  namespace: "string",
} as const;

export type KubeconfigCluster = ValueOf<typeof CLUSTER>;

/** Context entry of a kubeconfig: cluster, user and namespace. */
export type KubeconfigContext = ValueOf<typeof CONTEXT>;

/** Exec plugin of a user: a program that provides credentials. */
export type KubeconfigExec = ValueOf<typeof EXEC>;

/** User entry of a kubeconfig: credentials and impersonation. */
export type KubeconfigUser = ValueOf<typeof USER> & {
  readonly exec?: KubeconfigExec | undefined;
};

/** Content of one kubeconfig file, or of several merged ones. */
export interface Kubeconfig {
  readonly "current-context"?: string | undefined;
  /** Clusters by name. */
  readonly clusters: ReadonlyMap<string, FromFile<KubeconfigCluster>>;
  /** Contexts by name. */
  readonly contexts: ReadonlyMap<string, FromFile<KubeconfigContext>>;
  /** Users by name. */
  readonly users: ReadonlyMap<string, FromFile<KubeconfigUser>>;
}

export interface KubeconfigOrigin {
  /** Path of the file as the user gave it, for errors. */
  readonly file: string;
  /** Folder that relative paths in the file refer to. */
  readonly folder: string;
}

/** Entry of a kubeconfig with its origin. */
export interface FromFile<T> extends KubeconfigOrigin {
  readonly value: T;
  /** Path of the entry within the file, such as `users[admin].user`. */
  readonly path: string;
}

/** Formats the location of a field, for errors: `file: "users[a].user.token"`. */
export function fieldText(entry: FromFile<unknown>, field: string): string {
  return `${entry.file}: "${entry.path}.${field}"`;
}

/** Resolves a path in a kubeconfig relative to the folder of its file. */
export function pathFrom(entry: FromFile<unknown>, path: string): string {
  return isAbsolute(path) ? path : resolve(entry.folder, path);
}

/** Maximum size of a kubeconfig, in bytes. */
const MAX_KUBECONFIG_BYTES = 16 << 20;
/** Maximum number of line breaks and commas, as parsing is slow per value. */
const MAX_SEPARATORS = 200_000;

/**
 * Reads a kubeconfig file.
 *
 * @returns `undefined` if the file does not exist.
 * @throws {Error} If the file cannot be read.
 * @throws {SyntaxError} If it is not YAML.
 * @throws {TypeError} If it is not a kubeconfig.
 */
export async function readKubeconfig(
  path: string,
): Promise<Kubeconfig | undefined> {
  let text: string | undefined;
  try {
    text = await readLimited(path, MAX_KUBECONFIG_BYTES);
  } catch (error) {
    const code = fileFault(error);
    if (code === "ENOENT") return undefined;
    throw new Error(
      `Cannot read kubeconfig ${path}: it must be a readable file: received ${code}`,
    );
  }
  if (text === undefined) throw tooLarge(path, "more");
  const folder = dirname(resolve(path));
  return await parseKubeconfig(text, { file: path, folder });
}

function tooLarge(file: string, received: string): RangeError {
  return new RangeError(
    `Cannot read kubeconfig ${file}: it must have at most ${MAX_KUBECONFIG_BYTES} bytes: received ${received}`,
  );
}

/**
 * Parses and checks a kubeconfig.
 *
 * @param text YAML or JSON.
 * @throws {SyntaxError} If the text is not YAML.
 * @throws {TypeError} If a field has the wrong type or a name occurs twice. The
 * error names file, field and expected type, and quotes no value.
 */
export async function parseKubeconfig(
  text: string,
  origin: KubeconfigOrigin,
): Promise<Kubeconfig> {
  const { file } = origin;
  if (text.length > MAX_KUBECONFIG_BYTES) {
    throw tooLarge(file, `${text.length}`);
  }
  const separators = text.match(/[\n,]/g)?.length ?? 0;
  if (separators > MAX_SEPARATORS) {
    throw new RangeError(
      `Cannot read kubeconfig ${file}: it must have at most ${MAX_SEPARATORS} line breaks and commas: received ${separators}`,
    );
  }
  const checked = checkValue(await parseYaml(text, file) ?? {}, KUBECONFIG, {
    file,
    path: "",
  }) as ValueOf<typeof KUBECONFIG>;
  return {
    "current-context": checked["current-context"],
    clusters: byName("cluster", checked.clusters, origin),
    contexts: byName("context", checked.contexts, origin),
    users: byName("user", checked.users, origin),
  };
}

/**
 * Parses YAML without those checks of the parser that take quadratic time
 * (duplicate keys, positions of errors).
 */
async function parseYaml(text: string, file: string): Promise<unknown> {
  const { isScalar, LineCounter, parseDocument, visit } = await import("yaml");
  const lineCounter = new LineCounter();
  const fail = (code: string, offset?: number) => {
    const { line, col } = lineCounter.linePos(offset ?? 0);
    return new SyntaxError(
      `Cannot read kubeconfig ${file}: it must be YAML: received ${
        offset === undefined ? code : `${code} at line ${line}, column ${col}`
      }`,
    );
  };
  const document = parseDocument(text, {
    logLevel: "error",
    prettyErrors: false,
    uniqueKeys: false,
    lineCounter,
  });
  const [fault] = document.errors;
  // Messages of the parser would quote the line.
  if (fault !== undefined) throw fail(fault.code, fault.pos[0]);
  visit(document, {
    Map(_, { items }) {
      const names = new Set<string>();
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : undefined;
        if (name === undefined) continue;
        if (names.has(name)) {
          throw fail("DUPLICATE_KEY", (key as { range?: number[] }).range?.[0]);
        }
        names.add(name);
      }
    },
  });
  try {
    return document.toJS();
  } catch {
    throw fail("a syntax error");
  }
}

/**
 * Merges kubeconfigs as kubectl does: for each name, the first file with an entry
 * provides it completely; the first file with a current context provides that.
 */
export function mergeKubeconfigs(files: readonly Kubeconfig[]): Kubeconfig {
  return {
    "current-context": files.map((file) => file["current-context"])
      .find((name) => name),
    clusters: firstOfEach(files.map(({ clusters }) => clusters)),
    contexts: firstOfEach(files.map(({ contexts }) => contexts)),
    users: firstOfEach(files.map(({ users }) => users)),
  };
}

const KUBECONFIG = {
  kind: "Config",
  apiVersion: "v1",
  "current-context": "string",
  clusters: [{ name: "string!", cluster: CLUSTER }],
  contexts: [{ name: "string!", context: CONTEXT }],
  users: [{ name: "string!", user: { ...USER, exec: EXEC } }],
} as const;

type Named<Part extends string, T> =
  & { readonly name: string }
  & { readonly [_ in Part]?: T | undefined };

/** File and path of a value, for errors. */
interface ValuePath {
  readonly file: string;
  readonly path: string;
}

/** Checks a value and drops unknown fields and nulls, which kubectl ignores. */
function checkValue(value: unknown, shape: Shape, at: ValuePath): unknown {
  switch (shape) {
    case "any":
      try {
        JSON.stringify(value);
      } catch {
        return fail("be a finite value", value, at);
      }
      return value;
    case "boolean":
      if (typeof value === "boolean") return value;
      return fail("be of type boolean", value, at);
    case "string":
    case "string!":
      if (typeof value === "string") return value;
      return fail("be of type string", value, at);
    case "Config":
    case "v1":
      return value === shape ? value : fail(`be "${shape}"`, value, at);
  }
  const { file, path } = at;
  if (isList(shape)) {
    if (!Array.isArray(value)) return fail("be of type array", value, at);
    return value.map((item: unknown, index) => {
      const name = isObject(item) && typeof item["name"] === "string"
        ? item["name"]
        : index;
      const itemPath = { file, path: `${path}[${name}]` };
      return checkValue(item ?? undefined, shape[0], itemPath);
    });
  }
  if (!isObject(value)) return fail("be of type object", value, at);
  const checked: Record<string, unknown> = {};
  for (const name of Object.keys("*" in shape ? value : shape)) {
    const field = shape["*"] ?? shape[name] as Shape;
    const given = value[name] ?? undefined;
    if (given === undefined && field !== "string!") continue;
    checked[name] = checkValue(given, field, {
      file,
      path: path === "" ? name : `${path}.${name}`,
    });
  }
  return checked;
}

function fail(expected: string, value: unknown, at: ValuePath): never {
  throw new TypeError(
    `Cannot read kubeconfig ${at.file}: ${
      at.path === "" ? "the document" : `"${at.path}"`
    } must ${expected}: received ${typeOf(value)}`,
  );
}

/** Describes the type of a value; the value itself may be secret. */
function typeOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

function isList(shape: Shape): shape is List {
  return Array.isArray(shape);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function byName<Part extends string, T extends object>(
  part: Part,
  entries: readonly Named<Part, T>[] = [],
  origin: KubeconfigOrigin,
): Map<string, FromFile<T>> {
  const map = new Map<string, FromFile<T>>();
  for (const entry of entries) {
    const { name } = entry;
    if (map.has(name)) {
      throw new TypeError(
        `Cannot read kubeconfig ${origin.file}: the names in "${part}s" must differ: received "${name}" twice`,
      );
    }
    const value = entry[part] ?? {} as T;
    map.set(name, { value, path: `${part}s[${name}].${part}`, ...origin });
  }
  return map;
}

function firstOfEach<T>(
  maps: readonly ReadonlyMap<string, T>[],
): ReadonlyMap<string, T> {
  return new Map(maps.toReversed().flatMap((map) => [...map]));
}
