import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const { guides, reference } = JSON.parse(
  readFileSync(new URL("../.cache/pages/sidebar.json", import.meta.url), "utf8"),
);

const INLINE_SCRIPT_REGEXP = /<script(?![^>]*\ssrc=)[^>]*>([^]*?)<\/script>/g;

/** Policy of a page: its own files, and the inline scripts that it was built with. */
function policy(html) {
  const hashes = [...html.matchAll(INLINE_SCRIPT_REGEXP)].map(([, code]) =>
    `'sha256-${createHash("sha256").update(code).digest("base64")}'`
  );
  return [
    "default-src 'self'",
    `script-src 'self' ${[...new Set(hashes)].join(" ")}`,
    // The colours of code are attributes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

export default {
  title: "Coracle",
  description: "Kubernetes operators in TypeScript, for Node, Deno and Bun.",
  lang: "en",
  srcDir: ".cache/pages",
  outDir: "dist",
  cacheDir: ".cache/vitepress",
  base: process.env.SITE_BASE ?? "/",
  head: [["link", {
    rel: "icon",
    type: "image/svg+xml",
    href: `${process.env.SITE_BASE ?? "/"}logo.svg`,
  }]],
  // Pictures and the texts for language models are no pages.
  ignoreDeadLinks: [/^\/pictures\//, /^\/llms/],
  metaChunk: true,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
    config(md) {
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, index, options, env, self) => {
        const { info, content } = tokens[index];
        return info.trim() === "mermaid"
          ? `<Mermaid graph="${encodeURIComponent(content)}" />`
          : fence(tokens, index, options, env, self);
      };
    },
  },
  transformHtml: (html) =>
    html.replace(
      /<head>/,
      `<head>\n<meta http-equiv="Content-Security-Policy" content="${
        policy(html)
      }">`,
    ),
  themeConfig: {
    logo: "/logo.svg",
    nav: [
      ...guides.filter(({ link }) => link !== undefined).map((
        { text, link },
      ) => ({ text, link, activeMatch: `^${link}` })),
      { text: "Reference", link: "/reference/", activeMatch: "^/reference/" },
    ],
    sidebar: { "/reference/": reference, "/": guides },
    outline: [2, 3],
    search: { provider: "local" },
    notFound: {
      title: "No such page",
      quote: "It may have moved. The search finds guides and symbols.",
      linkLabel: "Go to the start page",
      linkText: "Start page",
    },
    socialLinks: [{
      icon: "github",
      link: "https://github.com/coracle-dev/operator",
    }],
    footer: { message: "Apache-2.0" },
  },
};
