/**
 * Operator that copies the secret of a private registry into every namespace and
 * adds it to the default service account there, so that pods can pull images.
 * The secret is `registry` in the namespace `registry`; a namespace is left out
 * by the annotation `gallery.coracle.dev/no-pull-secret`.
 */
import { Operator, type OperatorOptions, watch } from "@coracle/operator";
import { Namespace, Secret, ServiceAccount } from "@coracle/operator/kinds";

/** Namespace and name of the secret that is copied; copies have the same name. */
const HOME = "registry";
const NAME = "registry";
const OPT_OUT = "gallery.coracle.dev/no-pull-secret";
const COPY = { "gallery.coracle.dev/copy": "true" };

const account = (namespace: string) => ({
  metadata: { namespace, name: "default" },
});

export function operator(options: OperatorOptions = {}): Operator {
  const source = watch<Namespace, Secret>(Secret, {
    name: "source",
    // Without the copies: what is cached twice can be old in one place.
    namespaces: [HOME],
    fieldSelector: `metadata.name=${NAME}`,
    references: () => [{ namespace: HOME, name: NAME }],
  });
  const operator = new Operator(options);
  operator.register(Namespace, {
    async reconcile({ metadata }, ctx) {
      const { name: namespace, annotations = {} } = metadata;
      if (namespace === HOME) return;
      const secret = await ctx.secondary(source);
      const key = { namespace, name: NAME };
      if (secret === undefined || OPT_OUT in annotations) {
        const copy = await ctx.get(Secret, NAME, namespace);
        const isOurs = copy?.metadata.labels?.["gallery.coracle.dev/copy"];
        if (!isOurs) return;
        // What is no longer applied is removed; the copy goes last, as it tells that
        // there is something to remove.
        await ctx.apply(ServiceAccount, account(namespace), { owned: false });
        await ctx.delete(Secret, key);
        return;
      }
      await ctx.apply(Secret, {
        metadata: { ...key, labels: COPY },
        type: secret.type,
        data: secret.data,
      });
      // Server-side apply adds an entry to the list and keeps those of others.
      await ctx.apply(ServiceAccount, {
        ...account(namespace),
        imagePullSecrets: [{ name: NAME }],
      }, { owned: false });
    },
  }, {
    owns: [
      watch(Secret, {
        name: "copies",
        labelSelector: "gallery.coracle.dev/copy=true",
      }),
    ],
    watches: [source],
  });
  return operator;
}

if (import.meta.main) await operator().run();
