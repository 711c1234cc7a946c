import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthority, issueCertificate } from "@coracle/operator/internal";
import type { ApiServerOptions } from "../../apiserver/server_options.ts";
import { readUsers } from "../embedded_server.ts";
import { KUBE_APISERVER_FLAGS } from "./flag_lists.ts";
import { readProgramFlags } from "./program_flags.ts";

/** Settings of an API server from the flags of kube-apiserver. */
export interface KubeApiServer {
  readonly options: ApiServerOptions & { readonly port: number };
  /** Flags whose values have no effect, for the log. */
  readonly notes: readonly string[];
}

const PLUGINS_OFF_BY_DEFAULT =
  "AlwaysAdmit AlwaysDeny AlwaysPullImages DenyServiceExternalIPs EventRateLimit ExtendedResourceToleration ImagePolicyWebhook LimitPodHardAntiAffinityTopology NamespaceAutoProvision NamespaceExists NodeRestriction OwnerReferencesPermissionEnforcement PodNodeSelector PodTolerationRestriction";
/** Plug-ins that are on by default, and that the embedded server does not have. */
const MISSING_PLUGINS = "ClusterTrustBundleAttest MutatingAdmissionPolicy";

/**
 * Reads the command line of kube-apiserver and the files that it names.
 *
 * @throws {Error} If a flag is unknown, not supported or has a wrong value, or a
 * file cannot be read.
 */
export function readKubeApiServer(args: readonly string[]): KubeApiServer {
  const values = readProgramFlags(args, KUBE_APISERVER_FLAGS);
  const last = (name: string) => values.get(name)?.at(-1) || undefined;
  const list = (name: string) =>
    (values.get(name) ?? []).flatMap((text) => text.split(","))
      .map((text) => text.trim()).filter(Boolean);
  const file = (name: string) => {
    const path = last(name);
    return path === undefined ? undefined : contents(path, name);
  };
  const tokens = last("token-auth-file");
  const gates = list("feature-gates").map((text) => text.replace(/^kube:/, ""));
  if (last("anonymous-auth") === "false") {
    throw wrong("anonymous-auth", "only true is supported", "false");
  }
  return {
    options: {
      port: portOf(last("secure-port") ?? "6443"),
      host: last("bind-address"),
      serving: servingPair(
        last("tls-cert-file"),
        last("tls-private-key-file"),
        last("cert-dir"),
        last("bind-address"),
      ),
      clientAuthorities: file("client-ca-file"),
      users: tokens === undefined ? undefined : readUsers(tokens),
      authorization: authorizationOf(list("authorization-mode")),
      serviceAccounts: {
        issuers: values.get("service-account-issuer"),
        audiences: list("api-audiences"),
        keys: values.get("service-account-key-file")
          ?.map((path) => contents(path, "service-account-key-file")),
        signingKey: file("service-account-signing-key-file"),
      },
      disabledAdmission: list("disable-admission-plugins").filter((name) =>
        !`${PLUGINS_OFF_BY_DEFAULT} ${MISSING_PLUGINS}`.split(" ")
          .includes(name)
      ),
      featureGates: {
        ShardedListAndWatch: gates.includes("ShardedListAndWatch=true"),
      },
    },
    notes: [
      ...gates.filter((gate) => !gate.startsWith("ShardedListAndWatch="))
        .map((gate) => `--feature-gates=${gate}`),
      ...list("runtime-config").map((api) => `--runtime-config=${api}`),
      ...list("enable-admission-plugins")
        .filter((name) => PLUGINS_OFF_BY_DEFAULT.split(" ").includes(name))
        .map((name) => `--enable-admission-plugins=${name}`),
    ],
  };
}

function wrong(name: string, why: string, value: string): Error {
  return new Error(
    `Cannot start kube-apiserver: --${name}: ${why}: received ${value}`,
  );
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port > 0 && port < 65_536) return port;
  throw wrong("secure-port", "it must be a number from 1 to 65535", text);
}

function authorizationOf(modes: readonly string[]): "none" | "rbac" {
  for (const mode of modes) {
    if (["AlwaysAllow", "RBAC", "Node"].includes(mode)) continue;
    throw wrong(
      "authorization-mode",
      "the modes AlwaysAllow, RBAC and Node are supported",
      mode,
    );
  }
  return modes.length === 0 || modes.includes("AlwaysAllow") ? "none" : "rbac";
}

/**
 * Serving certificate and key: the given files, or those of the folder, which
 * are created if they are missing; undefined without both.
 */
function servingPair(
  certificate: string | undefined,
  key: string | undefined,
  folder: string | undefined,
  host: string | undefined,
): ApiServerOptions["serving"] {
  if (certificate !== undefined && key !== undefined) {
    return {
      certificate: contents(certificate, "tls-cert-file"),
      key: contents(key, "tls-private-key-file"),
    };
  }
  if (certificate !== undefined || key !== undefined) {
    throw wrong(
      "tls-cert-file",
      "it needs --tls-private-key-file, and the other way round",
      "one of them",
    );
  }
  if (folder === undefined) return undefined;
  const files = {
    certificate: join(folder, "apiserver.crt"),
    key: join(folder, "apiserver.key"),
  };
  if (existsSync(files.certificate) && existsSync(files.key)) {
    return {
      certificate: contents(files.certificate, "cert-dir"),
      key: contents(files.key, "cert-dir"),
    };
  }
  const authority = createAuthority({ commonName: "kube-apiserver-ca" });
  const own = issueCertificate(authority, {
    commonName: "kube-apiserver",
    usage: "server",
    hosts: [...new Set(["localhost", "127.0.0.1", "::1", host ?? "localhost"])],
  });
  const pair = {
    certificate: `${own.certificate}${authority.certificate}`,
    key: own.key,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(files.certificate, pair.certificate);
  writeFileSync(files.key, pair.key, { mode: 0o600 });
  return pair;
}

function contents(path: string, flag: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw wrong(
      flag,
      "it must be a readable file",
      `${path} (${(error as Error).message})`,
    );
  }
}
