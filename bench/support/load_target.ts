import type { DefinedKind } from "@coracle/operator/crd";
import { Greeting, greetingText } from "./greeting.ts";
import { pageText, WebApp } from "./web_app.ts";

/** Object in a watch event of a load. */
export interface SeenObject {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion?: string | undefined;
  };
  readonly status?: { readonly text?: string | undefined } | undefined;
  readonly data?: Readonly<Record<string, string>> | undefined;
  /** Status code in an error event. */
  readonly code?: number | undefined;
}

/** Objects that a load changes, and where the operator's answer is seen. */
export interface LoadTarget {
  readonly kind: DefinedKind<Greeting> | DefinedKind<WebApp>;
  /** Path of the objects. */
  readonly folder: string;
  /** Path and query of the objects that are watched. */
  readonly watched: string;
  /** Name of an object by its index. */
  name(index: number): string;
  /** Spec with a text that is different in each round. */
  spec(text: string): Readonly<Record<string, string>>;
  /** Expected text in the operator's answer. */
  expected(text: string): string;
  /** Name of the object that a watched object belongs to. */
  nameOf(seen: SeenObject): string;
  /** Text of the operator's answer in a watched object. */
  textOf(seen: SeenObject): string | undefined;
}

function folderOf({ group, version, plural }: LoadTarget["kind"]): string {
  return `/apis/${group}/${version}/namespaces/default/${plural}`;
}

/** Greetings, whose status is the answer. */
export const GREETINGS: LoadTarget = {
  kind: Greeting,
  folder: folderOf(Greeting),
  watched: `${folderOf(Greeting)}?`,
  name: (index) => `greeting-${index}`,
  spec: (name) => ({ name }),
  expected: (name) => greetingText({ name }),
  nameOf: ({ metadata }) => metadata.name,
  textOf: ({ status }) => status?.text,
};

/** Apps with ten dependents; one of them is the answer. */
export const WEB_APPS: LoadTarget = {
  kind: WebApp,
  folder: folderOf(WebApp),
  watched: "/api/v1/namespaces/default/configmaps?labelSelector=part%3Dpage&",
  name: (index) => `app-${index}`,
  spec: (page) => ({ image: "registry.example.com/app", page }),
  expected: pageText,
  nameOf: ({ metadata }) => metadata.name.replace(/-page$/, ""),
  textOf: ({ data }) => data?.["config.yaml"],
};
