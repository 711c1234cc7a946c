import type { Kind, UntypedObject } from "@coracle/operator/client";
import { isJsonObject } from "@coracle/operator/internal";
import { resourceKey } from "../../apiserver/storage/store.ts";
import type {
  Snapshot,
  SnapshotInfo,
  SnapshotResource,
  SnapshotSink,
} from "./snapshot.ts";

/** Objects in a page. */
const PAGE = 500;

/** Names of every cluster. */
const COMMON = /^(?:default|kubernetes|kube-.*|.*[^a-z0-9.-].*)$/;

/** Built-in resources without a namespace whose names are those of users. */
const CLUSTER_RESOURCES: ReadonlySet<string> = new Set([
  "/namespaces",
  "/nodes",
  "/persistentvolumes",
]);

/** Fields that name no object, or an API. */
const KEPT_FIELDS: ReadonlySet<string> = new Set([
  ...["apiVersion", "kind", "apiGroup", "apiGroups", "group", "finalizers"],
  ...["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"],
  ...["manager", "operation", "fieldsType", "subresource", "time", "type"],
]);

/** Fields whose own fields are named by users, in objects and in managedFields. */
const NAMED_BY_USERS =
  /^(?:f:)?(?:labels|annotations|matchLabels|nodeSelector|selector|data|binaryData|stringData)$/;

/** What may be a name, or have one in it. */
const RUN = /(?<![A-Za-z0-9])[a-z0-9]+(?:[.-][a-z0-9]+)*(?![A-Za-z0-9])/g;

/** What gets a pseudonym, and what does not. */
export interface PseudonymOptions {
  /** Kinds whose names are in those of other objects; by default all custom ones. */
  readonly primaries?: readonly Pick<Kind, "group" | "kind">[] | undefined;
  /** Names that stay, such as those that the code of the operator knows. */
  readonly keep: readonly string[];
}

/**
 * Names of objects and namespaces, with a pseudonym for each, such as `site-12`. It is
 * the same wherever the name is written as a word: in references, labels, fields of
 * ConfigMaps, hosts. So an object that is named after a primary, such as `shop-web`,
 * still is: `site-12-web`.
 */
export class Pseudonyms {
  readonly #pseudonyms: ReadonlyMap<string, string>;
  /** Most words that a name has. */
  readonly #words: number;
  readonly #groups: ReadonlySet<string>;

  constructor(snapshot: Snapshot, { primaries, keep }: PseudonymOptions) {
    const { resources } = snapshot.info;
    this.#groups = new Set(resources.map(({ group }) => group));
    const custom = new Set(
      [...snapshot.definitions.keys()].map((name) => name.split(".", 1)[0]),
    );
    const isCustom = ({ group, plural }: SnapshotResource) =>
      custom.has(plural) && snapshot.definitions.has(`${plural}.${group}`);
    const isPrimary = (resource: SnapshotResource) =>
      primaries?.some(({ group, kind }) =>
        group === resource.group && kind === resource.kind
      ) ?? isCustom(resource);
    const roots = new Map<string, string>();
    const others = new Map<string, string>();
    const add = (names: Map<string, string>, name: string, kind: string) => {
      if (COMMON.test(name) || keep.includes(name)) return;
      if (!names.has(name)) names.set(name, kind.toLowerCase());
    };
    for (const resource of resources) {
      const key = resourceKey(resource);
      const isNamed = resource.scope === "Namespaced" || isCustom(resource) ||
        CLUSTER_RESOURCES.has(key);
      for (const { object } of isNamed ? snapshot.objects(key) : []) {
        const { name, ownerReferences = [] } = object.metadata;
        const isRoot = isPrimary(resource) && ownerReferences.length === 0;
        add(isRoot ? roots : others, name, resource.kind);
      }
    }
    for (const namespace of snapshot.namespaces) {
      add(others, namespace, "namespace");
    }
    this.#pseudonyms = numbered(roots);
    this.#words = mostWords(roots.keys());
    // Those that are named after a primary get the pseudonym of the primary.
    for (const name of others.keys()) {
      if (this.rename(name) !== name) others.delete(name);
    }
    this.#pseudonyms = new Map([...this.#pseudonyms, ...numbered(others)]);
    this.#words = mostWords(this.#pseudonyms.keys());
  }

  /** Replaces the names that stand as words in a text. */
  rename(text: string): string {
    return text.replace(RUN, (run: string, at: number) => {
      const isDomain = run.includes(".");
      // The prefix of a label, a finalizer or an image is that of its author.
      const isPrefix = isDomain && text[at + run.length] === "/" &&
        text[at - 1] !== "/";
      if (isPrefix || isDomain && this.#groups.has(run)) return run;
      const words = run.split(/([.-])/);
      let renamed = "";
      for (let from = 0; from < words.length;) {
        let length = Math.min(2 * this.#words - 1, words.length - from);
        let name: string | undefined;
        for (; length > 0; length -= 2) {
          // A word that is last has no separator after it.
          const part = words.slice(from, from + length).join("");
          name = this.#pseudonyms.get(part);
          if (name !== undefined) break;
        }
        const taken = Math.max(1, length);
        renamed += name ?? words[from];
        from += taken;
        renamed += words[from++] ?? "";
      }
      return renamed;
    });
  }

  /** Copies an object with pseudonyms. */
  object(object: UntypedObject): UntypedObject {
    return this.#value(object, false) as UntypedObject;
  }

  #value(value: unknown, isNamedByUsers: boolean): unknown {
    if (typeof value === "string") return this.rename(value);
    if (Array.isArray(value)) {
      return value.map((item) => this.#value(item, false));
    }
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, field]) => {
        const isKey = isNamedByUsers || /^[kv]:/.test(name);
        if (!isKey && KEPT_FIELDS.has(name)) return [name, field];
        return [
          isKey ? this.rename(name) : name,
          this.#value(field, NAMED_BY_USERS.test(name)),
        ];
      }),
    );
  }

  /** What a snapshot with pseudonyms is of. */
  info(info: SnapshotInfo): SnapshotInfo {
    return {
      ...info,
      namespaces: info.namespaces?.map((name) => this.rename(name)),
      selector: info.selector && this.rename(info.selector),
      unread: info.unread.map((one) => ({
        ...one,
        namespace: one.namespace && this.rename(one.namespace),
        why: this.rename(one.why),
      })),
    };
  }

  /** Puts a snapshot with pseudonyms into another place. */
  async write(snapshot: Snapshot, sink: SnapshotSink): Promise<void> {
    for (const resource of snapshot.info.resources) {
      const key = resourceKey(resource);
      if (key === "apiextensions.k8s.io/customresourcedefinitions") {
        await sink.add(resource, [...snapshot.definitions.values()]);
        continue;
      }
      let page: UntypedObject[] = [];
      for (const { object } of snapshot.objects(key)) {
        page.push(this.object(object as UntypedObject));
        if (page.length === PAGE) {
          await sink.add(resource, page);
          page = [];
        }
      }
      await sink.add(resource, page);
    }
  }
}

/** Numbers names by kind, in an order that tells nothing. */
function numbered(names: ReadonlyMap<string, string>): Map<string, string> {
  const counts = new Map<string, number>();
  const order = Array.from(
    names,
    (entry) => [crypto.randomUUID(), entry] as const,
  ).sort(([a], [b]) => a < b ? -1 : 1);
  return new Map(order.map(([, [name, kind]]) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return [name, `${kind}-${count}`];
  }));
}

function mostWords(names: Iterable<string>): number {
  let most = 1;
  for (const name of names) {
    most = Math.max(most, name.split(/[.-]/).length);
  }
  return most;
}
