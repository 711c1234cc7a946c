import { openHttpTransport } from "../../core/client/transport/open_transport.ts";

/** Where Pods come from. */
export interface PodStreamAddress {
  readonly url: string;
  /** The certificate of its authority, in PEM. */
  readonly authority: string;
}

/** The bytes of a watch of all Pods, the present ones first. */
export async function* podChunks(
  { url, authority }: PodStreamAddress,
): AsyncGenerator<Uint8Array, void, undefined> {
  const transport = await openHttpTransport({
    server: url,
    certificateAuthority: authority,
  });
  const { body } = await transport.send({
    method: "GET",
    path: "/api/v1/pods?watch=true&sendInitialEvents=true",
    headers: {},
  });
  yield* body;
}
