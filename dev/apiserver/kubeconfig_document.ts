/** Server and credentials of a kubeconfig. */
export interface KubeconfigOptions {
  /** URL of the server, such as `https://127.0.0.1:6443`. */
  readonly server: string;
  /** Certificate of the authority in PEM; undefined for plain HTTP. */
  readonly authority: string | undefined;
  readonly token: string;
}

/** Kubeconfig in YAML with one cluster, one user and one context. */
export function kubeconfigDocument(
  { server, authority, token }: KubeconfigOptions,
): string {
  const lines = [
    "apiVersion: v1",
    "kind: Config",
    "clusters:",
    "- name: coracle",
    "  cluster:",
    `    server: ${JSON.stringify(server)}`,
    ...(authority === undefined
      ? []
      : [`    certificate-authority-data: ${btoa(authority)}`]),
    "users:",
    "- name: coracle",
    "  user:",
    `    token: ${JSON.stringify(token)}`,
    "contexts:",
    "- name: coracle",
    "  context:",
    "    cluster: coracle",
    "    user: coracle",
    "    namespace: default",
    "current-context: coracle",
    "",
  ];
  return lines.join("\n");
}
