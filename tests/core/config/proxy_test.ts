import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyFromEnvironment } from "../../../core/config/proxy.ts";

const PROXY = "http://proxy:3128";

test("proxyFromEnvironment selects the proxy by the server's scheme", () => {
  const environment = { HTTPS_PROXY: PROXY, http_proxy: "plain:80" };
  const of = (server: string) => proxyFromEnvironment(server, environment);
  assert.equal(of("https://10.0.0.1"), PROXY);
  assert.equal(of("http://10.0.0.1"), "http://plain:80");
  assert.equal(proxyFromEnvironment("https://10.0.0.1", {}), undefined);
  assert.equal(
    proxyFromEnvironment("https://a", { HTTPS_PROXY: "", https_proxy: PROXY }),
    PROXY,
  );
});

test("proxyFromEnvironment never uses a proxy for loopback addresses", () => {
  for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"]) {
    const server = `https://${host}:6443`;
    assert.equal(
      proxyFromEnvironment(server, { HTTPS_PROXY: PROXY }),
      undefined,
      host,
    );
  }
});

test("proxyFromEnvironment follows NO_PROXY as Go does", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["*", "https://any", true],
    ["example.com", "https://example.com", true],
    ["example.com", "https://api.example.com", true],
    ["example.com", "https://notexample.com", false],
    [".example.com", "https://api.example.com", true],
    [".example.com", "https://example.com", false],
    ["*.example.com", "https://api.example.com", true],
    ["EXAMPLE.com ", "https://example.com", true],
    ["example.com:6443", "https://example.com:6443", true],
    ["example.com:443", "https://example.com", true],
    ["example.com:443", "https://example.com:6443", false],
    ["10.0.0.1", "https://10.0.0.1:6443", true],
    ["10.0.0.1", "https://10.0.0.10", false],
    ["10.0.0.0/8", "https://10.200.3.4", true],
    ["10.0.0.0/8", "https://11.0.0.1", false],
    ["10.0.0.0/99", "https://10.0.0.1", false],
    ["10.0.0.0/", "https://11.0.0.1", false],
    ["10.0.0.0/8/0", "https://11.0.0.1", false],
    ["10.0.0.0/0x8", "https://10.0.0.1", false],
    ["10.0.0.0/8", "https://10.example.com", false],
    ["fd00::/8", "https://[fd12::1]:6443", true],
    ["fd00::1", "https://[fd00:0::1]", true],
    ["[fd00::1]:443", "https://[fd00::1]", true],
    ["fd00::1", "https://[fd00::2]", false],
    ["10.0.0.0/8", "https://[fd00::1]", false],
    ["example.com", "https://example.com.", true],
    [".example.com", "https://api.example.com.evil.org", false],
    [" , ,other", "https://example.com", false],
  ];
  for (const [pattern, server, excepted] of cases) {
    const proxy = proxyFromEnvironment(server, {
      HTTPS_PROXY: PROXY,
      NO_PROXY: `first,${pattern}`,
    });
    assert.equal(proxy === undefined, excepted, `${pattern} ${server}`);
  }
});
