import {
  ApiError,
  type Client,
  type HttpResponse,
  type Kind,
  type Transport,
} from "@coracle/operator/client";
import { readBody } from "@coracle/operator/internal";
import type { UntypedObject } from "@coracle/operator/client";
import { readJson, writeJson } from "../../apiserver/exact_json.ts";
import { builtinDefinitions } from "../../apiserver/builtin/builtin_definitions.ts";
import {
  isSecrets,
  secretDigests,
  SecretTexts,
} from "@coracle/operator/internal";
import { Namespace } from "@coracle/operator/kinds";
import type {
  SnapshotInfo,
  SnapshotResource,
  SnapshotSink,
  UnreadResource,
} from "./snapshot.ts";

/** Objects in a page. */
const PAGE = 500;
/** HTTP status of a continue token that is too old. */
const GONE = 410;
/** Number of times in a row that a page is read again whose connection broke. */
const MAX_CUTS = 4;
/** Maximum length of a Secret's value whose copies are replaced, encoded. */
const MAX_COPY = 64 * 1024;
/** Maximum size of a page in bytes. */
const MAX_PAGE_BYTES = 512 * 1024 * 1024;

/** Resource as the discovery of a server describes it. */
type Discovered = Awaited<ReturnType<Client["resources"]>>[number];

/** Resources that answer for themselves, or are records of work. */
export const NEVER_READ: ReadonlySet<string> = new Set([
  "/events",
  "/bindings",
  "/componentstatuses",
  "coordination.k8s.io/leases",
  "events.k8s.io/events",
]);

/** Resources that decide what a server admits, and how it completes objects. */
const CONTEXT: readonly string[] = [
  "/namespaces",
  "/limitranges",
  "admissionregistration.k8s.io/mutatingadmissionpolicies",
  "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
  "admissionregistration.k8s.io/validatingadmissionpolicies",
  "admissionregistration.k8s.io/validatingadmissionpolicybindings",
  "networking.k8s.io/ingressclasses",
  "scheduling.k8s.io/priorityclasses",
  "storage.k8s.io/storageclasses",
];

const CRDS = "apiextensions.k8s.io/customresourcedefinitions";
const NAMESPACES = "/namespaces";

/** Cluster to read. */
export interface ClusterReader {
  readonly client: Client;
  /** Transport of the client, which authenticates and retries. */
  readonly transport: Transport;
}

/** Kind to read, of any group if it names none. */
export interface WantedKind {
  readonly group: string | undefined;
  readonly kind: string;
}

/** What is read of a cluster, and how. */
export interface ReadOptions {
  /** Kinds to read; undefined for all that can be listed. */
  readonly kinds: readonly WantedKind[] | undefined;
  /** Whether a kind that the cluster does not serve is an error. */
  readonly isRequired?: boolean | undefined;
  /** Kinds to which the selector applies. */
  readonly primaries?: readonly Pick<Kind, "group" | "kind">[] | undefined;
  /** Namespaces to read; undefined for all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Label selector of the primaries. */
  readonly selector?: string | undefined;
  /** Whether the values of Secrets are replaced by digests. */
  readonly hidesSecrets: boolean;
  /** Wall time in milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** Shows how many objects were read; the total is an estimate of the server. */
  readonly onProgress?:
    | ((resource: string, done: number, total: number) => void)
    | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads objects of a cluster page by page, so that at most one page is in
 * memory. What the client may not read is noted, and is no error.
 *
 * @throws {ApiError | Error} If the cluster cannot be reached, or has no namespace of a
 * name.
 */
export async function readCluster(
  { client, transport }: ClusterReader,
  sink: SnapshotSink,
  options: ReadOptions,
): Promise<SnapshotInfo> {
  const at = options.now();
  const { gitVersion } = await client.version({ signal: options.signal });
  const served = storedVersions(await client.resources());
  for (const wanted of options.isRequired ? options.kinds ?? [] : []) {
    if ([...served.values()].some((one) => isOf(one, wanted))) continue;
    const { kind, group } = wanted;
    throw new Error(
      `Cannot read ${kind}${
        group ? `.${group}` : ""
      }: the cluster does not serve this kind`,
    );
  }
  const unread: UnreadResource[] = [];
  const resources: SnapshotResource[] = [];
  const seen = new Set<string>();
  const digests = secretDigests();
  const texts = new SecretTexts(MAX_COPY);
  const isHidden = options.hidesSecrets;
  const unknown = await readNamespaces(client, sink, {
    ...options,
    resource: served.get(NAMESPACES),
    onRead: (found) => resources.push(found),
  });
  const read = async (
    resource: Discovered,
    selector?: string,
    keeps: (object: UntypedObject) => boolean = () => true,
  ) => {
    const found: {
      -readonly [K in keyof SnapshotResource]: SnapshotResource[K];
    } = { ...described(resource), objects: 0 };
    const namespaces = resource.scope === "Namespaced"
      ? options.namespaces
      : undefined;
    let isRead = false;
    for (const namespace of namespaces ?? [undefined]) {
      let isPart = false;
      try {
        const pages = pagesOf({ client, transport }, resource, {
          namespace,
          selector,
          signal: options.signal,
        });
        for await (const { items, left, isNewer } of pages) {
          isRead = isPart = true;
          if (isNewer) found.isMixed = true;
          const kept = items.filter(keeps).map((object) => {
            if (!isHidden) return object;
            if (!isSecrets(resource)) return withoutCopies(object, texts);
            const shown = digests(object);
            texts.add(object, shown);
            return shown;
          });
          await sink.add(found, kept);
          found.objects += kept.length;
          if (namespace !== undefined && kept.length > 0) seen.add(namespace);
          options.onProgress?.(
            nameOf(resource),
            found.objects,
            found.objects + left,
          );
        }
      } catch (error) {
        if (!ApiError.is(error) || error.status === 401) throw error;
        // Nothing that is wrong with a selector is left out in silence.
        if (error.status === 400 && selector !== undefined) throw error;
        const why = error.isForbidden ? "forbidden" : error.message;
        unread.push({
          resource: nameOf(resource),
          namespace,
          why: isPart ? `read in part, the rest not: ${why}` : why,
        });
      }
    }
    if (isRead) resources.push(found);
  };
  // Copies of the values of Secrets are found in what is read after them.
  const wanted = wantedOf(served, options).toSorted((a, b) =>
    Number(isSecrets(b)) - Number(isSecrets(a))
  );
  const definitions = served.get(CRDS);
  const builtIn = builtinVersions();
  const isCustom = wanted.some(({ group, plural }) =>
    !builtIn.has(`${group}/${plural}`)
  );
  if (definitions !== undefined && (isCustom || options.kinds === undefined)) {
    const names = new Set(
      wanted.map(({ group, plural }) => `${plural}.${group}`),
    );
    await read(
      definitions,
      undefined,
      ({ metadata }) => options.kinds === undefined || names.has(metadata.name),
    );
  }
  const primaries = options.primaries ?? [];
  for (const resource of wanted) {
    const isPrimary = primaries.some((kind) => isOf(resource, kind));
    await read(resource, isPrimary ? options.selector : undefined);
  }
  for (const [name, why] of unknown) {
    unread.push({
      resource: "namespaces",
      why: `${why}: ${
        seen.has(name)
          ? `the labels of ${name} are not known`
          : `whether ${name} exists is not known`
      }`,
    });
  }
  const { namespaces, selector } = options;
  return {
    at,
    server: gitVersion,
    namespaces,
    selector,
    hidesSecrets: isHidden,
    resources,
    unread,
  };
}

/**
 * Reads the named namespaces, whose labels decide what a server admits.
 *
 * @returns Names of those that may not be read, with why.
 * @throws {Error} If the cluster has none of a name.
 */
async function readNamespaces(
  client: Client,
  sink: SnapshotSink,
  { namespaces, resource, signal, onRead }: {
    readonly namespaces?: readonly string[] | undefined;
    readonly resource: Discovered | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly onRead: (found: SnapshotResource) => void;
  },
): Promise<ReadonlyMap<string, string>> {
  const unknown = new Map<string, string>();
  if (namespaces === undefined || resource === undefined) return unknown;
  const items: UntypedObject[] = [];
  for (const name of new Set(namespaces)) {
    try {
      const found = await client.find(Namespace, { name }, { signal });
      if (found === undefined) {
        throw new Error(
          `Cannot read the namespace ${name}: the cluster has none of this name`,
        );
      }
      items.push({ ...found, metadata: { ...found.metadata, name } });
    } catch (error) {
      if (!ApiError.is(error) || error.status === 401) throw error;
      unknown.set(name, error.isForbidden ? "forbidden" : error.message);
    }
  }
  if (items.length === 0) return unknown;
  await sink.add(described(resource), items);
  onRead({ ...described(resource), objects: items.length });
  return unknown;
}

/** Storage versions of the built-in resources of an embedded server. */
function builtinVersions(): ReadonlyMap<string, string> {
  return new Map(
    builtinDefinitions().map((
      { group, plural, storageVersion },
    ) => [`${group}/${plural}`, storageVersion]),
  );
}

/**
 * Resources by group and plural, each in the version in which a server of ours
 * stores it, or else in the first one, which the server prefers.
 */
function storedVersions(
  served: readonly Discovered[],
): ReadonlyMap<string, Discovered> {
  const found = new Map<string, Discovered>();
  const builtIn = builtinVersions();
  for (const resource of served) {
    if (!resource.verbs.includes("list")) continue;
    const key = `${resource.group}/${resource.plural}`;
    if (!found.has(key) || builtIn.get(key) === resource.version) {
      found.set(key, resource);
    }
  }
  return found;
}

/** Resources to read, apart from definitions, those of the context first. */
function wantedOf(
  served: ReadonlyMap<string, Discovered>,
  { kinds, namespaces }: ReadOptions,
): readonly Discovered[] {
  const context = CONTEXT.filter((key) =>
    namespaces === undefined || key !== NAMESPACES
  );
  const others = [...served].filter(([key, resource]) =>
    key !== CRDS && !NEVER_READ.has(key) && !CONTEXT.includes(key) &&
    (kinds === undefined || kinds.some((kind) => isOf(resource, kind)))
  ).map(([, resource]) => resource);
  return [
    ...context.flatMap((key) => served.get(key) ?? []),
    ...others,
  ];
}

/** Object without copies of the values of Secrets. */
function withoutCopies(
  object: UntypedObject,
  secrets: SecretTexts,
): UntypedObject {
  if (secrets.size === 0) return object;
  const text = writeJson(object);
  const hidden = secrets.hideJson(text);
  return hidden === text ? object : readJson(hidden) as UntypedObject;
}

function isOf(
  resource: Discovered,
  { group, kind }: WantedKind,
): boolean {
  return (group === undefined || resource.group === group) &&
    resource.kind === kind;
}

function described(
  { group, version, plural, kind, scope }: Discovered,
): Omit<SnapshotResource, "objects"> {
  return { group, version, plural, kind, scope };
}

/** Plural and group, such as `deployments.apps`. */
function nameOf({ group, plural }: Discovered): string {
  return group === "" ? plural : `${plural}.${group}`;
}

async function textOf(response: HttpResponse): Promise<string> {
  return new TextDecoder().decode(await readBody(response, MAX_PAGE_BYTES));
}

interface Page {
  readonly items: readonly UntypedObject[];
  /** Number of objects on later pages, as far as the server knows it. */
  readonly left: number;
  /** Whether it is of a newer state than the first page. */
  readonly isNewer: boolean;
}

/**
 * Pages of a collection. One whose state is too old goes on in a newer state, and
 * one whose connection broke is read again.
 */
async function* pagesOf(
  { client, transport }: ClusterReader,
  resource: Discovered,
  { namespace, selector, signal }: {
    readonly namespace: string | undefined;
    readonly selector: string | undefined;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<Page> {
  const { group, version, plural, kind } = resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const within = namespace === undefined ? "" : `/namespaces/${namespace}`;
  const apiVersion = group === "" ? version : `${group}/${version}`;
  let next: string | undefined;
  let isNewer = false;
  let cuts = 0;
  for (;;) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (next !== undefined) query.set("continue", next);
    if (selector !== undefined) query.set("labelSelector", selector);
    const request = {
      verb: "list",
      action: `list ${nameOf(resource)}`,
      method: "GET",
      path: `${root}${within}/${plural}?${query}`,
      headers: { accept: "application/json" },
      signal,
    } as const;
    const first = await transport.send(request);
    const isExpired = first.status === GONE && next !== undefined;
    const isAnswer = first.status < 300 || isExpired;
    if (!isAnswer) await first.cancel();
    // It throws what the server says.
    const response = isAnswer ? first : await client.request(request);
    let text: string;
    try {
      text = await textOf(response);
    } catch (error) {
      if (error instanceof RangeError || signal?.aborted || cuts === MAX_CUTS) {
        throw error;
      }
      cuts++;
      continue;
    }
    cuts = 0;
    if (isExpired) {
      const status = JSON.parse(text);
      // The server has forgotten the state, and offers the rest in a newer one.
      next = status.metadata?.continue || undefined;
      isNewer = true;
      if (next !== undefined) continue;
      throw new ApiError(
        `Cannot ${request.action}: its state became too old while it was read`,
        { status: GONE, reason: "Expired" },
      );
    }
    const page = readJson(text) as {
      readonly items?: readonly UntypedObject[] | null;
      readonly metadata?: {
        readonly continue?: string;
        readonly remainingItemCount?: number;
      };
    };
    const items = page.items ?? [];
    // The items of a list of a built-in kind do not name it.
    for (const item of items) {
      item.apiVersion = apiVersion;
      item.kind = kind;
    }
    const { metadata = {} } = page;
    yield { items, left: metadata.remainingItemCount ?? 0, isNewer };
    next = metadata.continue || undefined;
    if (next === undefined) return;
  }
}
