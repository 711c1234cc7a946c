/**
 * Operator that copies ConfigMaps and Secrets into other namespaces, after the
 * Reflector of Emberstack, with its annotations. A source allows it, and may have
 * its copies made:
 *
 *     metadata:
 *       name: ca
 *       annotations:
 *         reflector.v1.k8s.emberstack.com/reflection-allowed: "true"
 *         reflector.v1.k8s.emberstack.com/reflection-allowed-namespaces: "shop,team-.*"
 *         reflector.v1.k8s.emberstack.com/reflection-auto-enabled: "true"
 *
 * An object that somebody has made becomes a copy by the annotation
 * `reflector.v1.k8s.emberstack.com/reflects: "default/ca"`.
 */
import {
  type ControllerHandle,
  type Kind,
  type KubernetesObject,
  Operator,
  type OperatorOptions,
  watch,
} from "@coracle/operator";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import { byFunction } from "@coracle/operator/sources";
import { isDeepStrictEqual } from "node:util";

const PREFIX = "reflector.v1.k8s.emberstack.com";
const ALLOWED = `${PREFIX}/reflection-allowed`;
const ALLOWED_NAMESPACES = `${PREFIX}/reflection-allowed-namespaces`;
const AUTO = `${PREFIX}/reflection-auto-enabled`;
const AUTO_NAMESPACES = `${PREFIX}/reflection-auto-namespaces`;
const REFLECTS = `${PREFIX}/reflects`;
const MADE = `${PREFIX}/auto-reflects`;

/** As for primaries: one cache has all objects of a kind, and no older copy. */
const PRUNED = ["metadata.managedFields"];

/** ConfigMap or Secret. */
interface Content extends KubernetesObject {
  data?: Record<string, string> | undefined;
  binaryData?: Record<string, string> | undefined;
  type?: string | undefined;
}

/** Whether a list of patterns, such as `shop,team-.*`, has a namespace. */
function includes(patterns: string | undefined, namespace: string): boolean {
  const all = (patterns ?? "").split(",").map((one) => one.trim());
  return all.join("") === "" ||
    all.some((one) => new RegExp(`^(?:${one})$`).test(namespace));
}

/** Whether the source allows copies in a namespace, and whether it wants them. */
function wishes({ metadata }: Content, namespace: string) {
  const { annotations = {} } = metadata;
  const isAllowed = annotations[ALLOWED] === "true" &&
    includes(annotations[ALLOWED_NAMESPACES], namespace);
  const isWanted = isAllowed && annotations[AUTO] === "true" &&
    includes(annotations[AUTO_NAMESPACES], namespace) &&
    namespace !== metadata.namespace;
  return { isAllowed, isWanted };
}

/** Key of the source of a copy; none for another object. */
function sourcesOf({ metadata: { annotations } }: Content) {
  const [namespace = "", name = ""] = annotations?.[REFLECTS]?.split("/") ?? [];
  return name === "" ? [] : [{ namespace, name }];
}

function reflect(operator: Operator, kind: Kind<Content>): void {
  const controller: ControllerHandle<Content> = operator.register<Content>(
    kind,
    {
      async reconcile(object, ctx) {
        const { metadata } = object;
        const { name, namespace = "" } = metadata;
        const [key] = sourcesOf(object);
        if (key === undefined) {
          for (const { metadata: other } of await ctx.list(Namespace)) {
            if (!wishes(object, other.name).isWanted) continue;
            if (other.deletionTimestamp !== undefined) continue;
            if (await ctx.get(kind, name, other.name)) continue;
            await ctx.create(kind, copyOf(object, other.name), {
              owned: false,
            });
          }
          return;
        }
        const source = await ctx.get(kind, key.name, key.namespace);
        const { isAllowed, isWanted } = source
          ? wishes(source, namespace)
          : { isAllowed: false, isWanted: false };
        if (metadata.annotations?.[MADE] === "true" && !isWanted) {
          await ctx.delete(kind, metadata);
          return;
        }
        if (source === undefined || !isAllowed) return;
        const { data, binaryData } = source;
        const isEqual = isDeepStrictEqual(
          [object.data, object.binaryData],
          [data, binaryData],
        );
        if (isEqual) return;
        await ctx.modify(kind, metadata, (copy) => {
          Object.assign(copy, { data, binaryData });
        });
      },
    },
    {
      watches: [
        // A change of a source, or its end, triggers its copies.
        watch<Content, Content>(kind, {
          prune: PRUNED,
          references: (object) => sourcesOf(object),
        }),
        // A copy that is gone, or a new namespace, triggers the sources.
        watch<Content, Content>(kind, {
          name: "copies",
          prune: PRUNED,
          mapper: byFunction((object) => sourcesOf(object)),
        }),
        watch<Content, Namespace>(Namespace, {
          mapper: byFunction(() => controller.primaries.keys()),
        }),
      ],
    },
  );
}

function copyOf(source: Content, namespace: string): Content {
  const { metadata: { name, namespace: home }, data, binaryData, type } =
    source;
  return {
    metadata: {
      name,
      namespace,
      annotations: { [REFLECTS]: `${home}/${name}`, [MADE]: "true" },
    },
    data,
    binaryData,
    type,
  };
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  reflect(operator, ConfigMap as Kind<Content>);
  reflect(operator, Secret as Kind<Content>);
  return operator;
}

if (import.meta.main) await operator().run();
