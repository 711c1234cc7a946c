import { isAbsolute, resolve } from "node:path";
import type { Clock } from "../clock.ts";
import type {
  Credential,
  CredentialSource,
  Impersonation,
} from "./cluster_config.ts";
import { ExecCredentials } from "./exec_credentials.ts";
import { type ExecPlugin, execPlugin } from "./exec_plugin.ts";
import { FileCredentials } from "./file_credentials.ts";
import type {
  FromFile,
  KubeconfigCluster,
  KubeconfigUser,
} from "./kubeconfig.ts";
import { checkCertificates, checkKey, decodeBase64 } from "./pem.ts";
import { SecretFile } from "./secret_file.ts";

/** What can stand in a header behind `Bearer`. */
const HEADER_TEXT = /^[\x21-\x7e]+$/;

/** An entry and one of its fields, for errors: `file: "users[a].user.token"`. */
export function fieldText(entry: FromFile<unknown>, field: string): string {
  return `${entry.file}: "${entry.path}.${field}"`;
}

/** A path of a kubeconfig, seen from the folder of its file. */
export function pathFrom(entry: FromFile<unknown>, path: string): string {
  return isAbsolute(path) ? path : resolve(entry.folder, path);
}

/**
 * What a user of a kubeconfig proves itself by.
 *
 * @param user The user.
 * @param cluster The cluster and its authority, for plug-ins that want them.
 * @param clock Tells when files and credentials are old.
 * @throws {TypeError} If its fields do not go together or hold something else
 * than they should.
 * @throws {Error} If a file cannot be read.
 */
export async function userCredentials(
  user: FromFile<KubeconfigUser>,
  cluster: FromFile<KubeconfigCluster> & {
    readonly authority?: string | undefined;
  },
  { clock }: { readonly clock: Clock },
): Promise<Credential | CredentialSource> {
  checkMethods(user);
  const { value } = user;
  if (value.exec !== undefined) {
    // The program is loaded only here: most configurations have none.
    const { runExecPlugin } = await import("./exec_process.ts");
    const plugin = placed(execPlugin(user, cluster), user);
    return new ExecCredentials(plugin, {
      clock,
      run: (plugin) => runExecPlugin(plugin, clock),
    });
  }
  if (value.token && !HEADER_TEXT.test(value.token)) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "token")
      }: it must be one line of visible characters: received ${value.token.length} characters of something else`,
    );
  }
  const file = (field: keyof KubeconfigUser) => {
    const path = value[field];
    return typeof path === "string" && path !== ""
      ? new SecretFile(pathFrom(user, path), {
        origin: fieldText(user, field),
        clock,
      })
      : undefined;
  };
  const data = (field: keyof KubeconfigUser) => {
    const text = value[field];
    return typeof text === "string" && text !== ""
      ? decodeBase64(text, fieldText(user, field))
      : undefined;
  };
  const certificateData = data("client-certificate-data");
  const keyData = data("client-key-data");
  const credentials = new FileCredentials({
    token: value.token,
    username: value.username,
    password: value.password,
    certificate: certificateData,
    key: keyData,
  }, {
    token: file("tokenFile"),
    certificate: certificateData ? undefined : file("client-certificate"),
    key: keyData ? undefined : file("client-key"),
  });
  checkCertificate(await credentials.current(), user);
  return credentials;
}

/** A program named by a path is found from the kubeconfig's folder. */
function placed(
  plugin: ExecPlugin,
  user: FromFile<KubeconfigUser>,
): ExecPlugin {
  return /[\\/]/.test(plugin.command)
    ? { ...plugin, command: pathFrom(user, plugin.command) }
    : plugin;
}

function checkCertificate(
  { certificate, key }: Credential,
  user: FromFile<KubeconfigUser>,
): void {
  const given = (field: "client-certificate" | "client-key") =>
    fieldText(user, user.value[`${field}-data`] ? `${field}-data` : field);
  if (certificate !== undefined) {
    checkCertificates(certificate, given("client-certificate"));
    if (key === undefined) {
      throw new TypeError(
        `Cannot use ${
          given("client-certificate")
        }: it must come with "client-key" or "client-key-data": received neither`,
      );
    }
  }
  if (key !== undefined) {
    if (certificate === undefined) {
      throw new TypeError(
        `Cannot use ${
          given("client-key")
        }: it must come with "client-certificate" or "client-certificate-data": received neither`,
      );
    }
    checkKey(key, given("client-key"), { certificate });
  }
}

/** Refuses what kubectl refuses, and what was taken out of Kubernetes. */
function checkMethods(user: FromFile<KubeconfigUser>): void {
  const { value } = user;
  const provider = value["auth-provider"];
  if (provider !== undefined) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "auth-provider")
      }: Kubernetes took auth providers out, an "exec" plug-in must stand here: received "${
        provider.name ?? ""
      }"`,
    );
  }
  const basic = value.username !== undefined || value.password !== undefined;
  const methods = [
    ...(value.token || value.tokenFile ? ["token"] : []),
    ...(basic ? ["username"] : []),
    ...(value.exec ? ["exec"] : []),
  ];
  if (methods.length > 1) {
    throw new TypeError(
      `Cannot use ${user.file}: "${user.path}" must have one way to prove who asks: received ${
        methods.join(" and ")
      }`,
    );
  }
  for (const part of ["client-certificate", "client-key"] as const) {
    if (value[part] && value[`${part}-data`]) {
      throw new TypeError(
        `Cannot use ${
          fieldText(user, part)
        }: it must not stand beside "${part}-data": received both`,
      );
    }
  }
}

/**
 * On whose behalf a user of a kubeconfig asks.
 *
 * @throws {TypeError} If there are groups, a uid or more facts but no user.
 */
export function userImpersonation(
  user: FromFile<KubeconfigUser>,
): Impersonation | undefined {
  const { as, "as-groups": groups, "as-uid": uid, "as-user-extra": extra } =
    user.value;
  if (as) return { user: as, uid, groups, extra };
  if (uid || groups?.length || extra !== undefined) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "as")
      }: it must name a user where "as-uid", "as-groups" or "as-user-extra" stand: received nothing`,
    );
  }
  return undefined;
}
