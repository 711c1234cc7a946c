import { defaultControllers } from "../../apiserver/controllers/controller_names.ts";

/** Controllers that are switched off without endpoints. */
const ENDPOINT_CONTROLLERS = [
  "-endpoints-controller",
  "-endpointslice-controller",
  "-endpointslice-mirroring-controller",
] as const;

/** Names of the controllers of the server of a simulation. */
export function worldControllers(
  { simulate, endpoints }: {
    /** Whether pods run on a simulated node. */
    readonly simulate: boolean;
    /** Whether Services get endpoints. */
    readonly endpoints: boolean;
  },
): readonly string[] {
  return [
    ...defaultControllers(simulate),
    // Its certificate would differ from run to run.
    "-root-ca-certificate-publisher-controller",
    ...endpoints ? [] : ENDPOINT_CONTROLLERS,
  ];
}
