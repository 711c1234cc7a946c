import type { Clock } from "../clock.ts";
import type {
  Credential,
  CredentialSource,
  Impersonation,
} from "./cluster_config.ts";
import { ExecCredentials, execPlugin } from "./exec_credentials.ts";
import { FileCredentials, SecretFile } from "./file_credentials.ts";
import {
  fieldText,
  type FromFile,
  type KubeconfigCluster,
  type KubeconfigUser,
  pathFrom,
} from "./kubeconfig.ts";
import { checkCertificates, checkKey, decodeBase64 } from "./pem.ts";

/** Valid bearer tokens. */
const HEADER_TEXT = /^[\x21-\x7e]+$/;

/**
 * Creates the credentials of a user of a kubeconfig.
 *
 * @param cluster The cluster and its authority, for exec plugins.
 * @throws {TypeError} If fields are invalid or exclude each other.
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
    // Loaded lazily: most configurations have no exec plugin.
    const { runExecPlugin } = await import("./exec_process.ts");
    return new ExecCredentials(execPlugin(user, cluster), {
      clock,
      run: (plugin) => runExecPlugin(plugin, clock),
    });
  }
  if (value.token && !HEADER_TEXT.test(value.token)) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "token")
      }: it must consist of printable ASCII characters: received a text of ${value.token.length} characters`,
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

function checkCertificate(
  { certificate, key }: Credential,
  user: FromFile<KubeconfigUser>,
): void {
  const given = (field: "client-certificate" | "client-key") =>
    fieldText(user, user.value[`${field}-data`] ? `${field}-data` : field);
  if (certificate === undefined && key === undefined) return;
  if (certificate === undefined || key === undefined) {
    const [present, missing] = key === undefined
      ? ["client-certificate", "client-key"] as const
      : ["client-key", "client-certificate"] as const;
    throw new TypeError(
      `Cannot use ${
        given(present)
      }: "${missing}" or "${missing}-data" is missing`,
    );
  }
  checkCertificates(certificate, given("client-certificate"));
  checkKey(key, given("client-key"), { certificate });
}

/** Refuses combinations that kubectl refuses, and removed auth providers. */
function checkMethods(user: FromFile<KubeconfigUser>): void {
  const { value } = user;
  const provider = value["auth-provider"];
  if (provider !== undefined) {
    throw new TypeError(
      `Cannot use ${
        fieldText(user, "auth-provider")
      }: Kubernetes has removed auth providers; use an "exec" plugin: received "${
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
      `Cannot use ${user.file}: "${user.path}" must have only one authentication method: received ${
        methods.join(" and ")
      }`,
    );
  }
  for (const part of ["client-certificate", "client-key"] as const) {
    if (value[part] && value[`${part}-data`]) {
      throw new TypeError(
        `Cannot use ${
          fieldText(user, part)
        }: it must not be combined with "${part}-data"`,
      );
    }
  }
}

/**
 * Reads the impersonation of a user of a kubeconfig.
 *
 * @throws {TypeError} If there are groups, a UID or extra attributes but no user.
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
      }: it is required with "as-uid", "as-groups" or "as-user-extra"`,
    );
  }
  return undefined;
}
