import * as z from "zod/mini";
import type {
  KubeconfigCluster,
  KubeconfigContext,
  KubeconfigUser,
} from "./kubeconfig.ts";

/** Schema of a map; a null is an absent field, as in Go. */
export function fields<Shape extends z.core.$ZodShape>(
  shape: Shape,
): z.ZodMiniType<z.output<z.ZodMiniObject<Shape>>> {
  return z.pipe(z.transform(withoutNulls), z.object(shape));
}

function withoutNulls(value: unknown): unknown {
  return typeof value !== "object" || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
      Object.entries(value).filter(([, given]) => given !== null),
    );
}

const TEXT = z.optional(z.string());
const TEXTS = z.optional(z.array(z.string()));
const YES_OR_NO = z.optional(z.boolean());

/** Text for a process, which a NUL character would end. */
const ARGUMENT = z.string().check(
  z.refine((text) => !text.includes("\0"), "must not contain a NUL character"),
);

/** Value that JSON can express: one that does not contain itself. */
const EXTENSION = z.unknown().check(z.refine((value) => {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}, "must be a finite value"));

const CLUSTER = fields({
  server: TEXT,
  "certificate-authority": TEXT,
  "certificate-authority-data": TEXT,
  "tls-server-name": TEXT,
  "insecure-skip-tls-verify": YES_OR_NO,
  "proxy-url": TEXT,
  extensions: z.optional(
    z.array(fields({ name: z.string(), extension: z.optional(EXTENSION) })),
  ),
});

const CONTEXT = fields({ cluster: TEXT, user: TEXT, namespace: TEXT });

const EXEC = fields({
  apiVersion: TEXT,
  command: z.optional(ARGUMENT),
  args: z.optional(z.array(ARGUMENT)),
  env: z.optional(
    z.array(fields({ name: ARGUMENT, value: z.optional(ARGUMENT) })),
  ),
  installHint: TEXT,
  provideClusterInfo: YES_OR_NO,
  interactiveMode: TEXT,
});

const USER = fields({
  "client-certificate": TEXT,
  "client-certificate-data": TEXT,
  "client-key": TEXT,
  "client-key-data": TEXT,
  token: TEXT,
  tokenFile: TEXT,
  username: TEXT,
  password: TEXT,
  as: TEXT,
  "as-uid": TEXT,
  "as-groups": TEXTS,
  "as-user-extra": z.optional(
    z.pipe(
      z.transform(withoutNulls),
      z.record(z.string(), z.array(z.string())),
    ),
  ),
  "auth-provider": z.optional(fields({ name: TEXT })),
  exec: z.optional(EXEC),
});

/** Entries of a kubeconfig, each with its name. */
type Named<Part extends string, T> =
  | readonly (
    & { readonly name: string }
    & { readonly [_ in Part]?: T | undefined }
  )[]
  | undefined;

/** Schema of a kubeconfig, with the field names of kubectl. */
export const KUBECONFIG: z.ZodMiniType<{
  readonly "current-context"?: string | undefined;
  readonly clusters?: Named<"cluster", KubeconfigCluster>;
  readonly contexts?: Named<"context", KubeconfigContext>;
  readonly users?: Named<"user", KubeconfigUser>;
}> = fields({
  kind: z.optional(z.literal("Config")),
  apiVersion: z.optional(z.literal("v1")),
  "current-context": TEXT,
  clusters: z.optional(
    z.array(fields({ name: z.string(), cluster: z.optional(CLUSTER) })),
  ),
  contexts: z.optional(
    z.array(fields({ name: z.string(), context: z.optional(CONTEXT) })),
  ),
  users: z.optional(
    z.array(fields({ name: z.string(), user: z.optional(USER) })),
  ),
});
