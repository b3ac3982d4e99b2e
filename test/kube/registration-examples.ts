import { objectNameFor, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { Example, Update } from './crd-example.ts';

const kind = serviceRegistrationKind;
const shop = { serviceName: 'shop', url: 'http://shop:8080' };

function named(serviceName: string): Example['object'] {
  return { name: objectNameFor(serviceName), spec: { ...shop, serviceName } };
}

function reachedAt(url: unknown): Example['object'] {
  return { name: 'shop', spec: { ...shop, url } };
}

function chosenBy(metadata: object): Example['object'] {
  return { name: 'shop', spec: { ...shop, metadata } };
}

function checkedBy(check: object): Example['object'] {
  return { name: 'shop', spec: { ...shop, check } };
}

/** Each with a name of one character. */
function entries(count: number, length: number): Record<string, string> {
  const names = Array.from({ length: count }, (_, index) => String.fromCodePoint(0xc0 + index));
  return Object.fromEntries(names.map((name) => [name, 'x'.repeat(length)]));
}

const nameFault = "serviceName must not contain ':', white space, invisible or control characters";
const objectNameFault = 'metadata.name must be spec.serviceName itself where that is a lower-case DNS label';
const urlFault = 'url must be an absolute http or https URL with a host';

/** ServiceRegistrations that the API server must accept, and such as it must refuse. */
export const registrationExamples: readonly Example[] = [
  { kind, sentence: 'the least there is', object: { name: 'shop', spec: shop } },
  {
    kind,
    sentence: 'everything there is',
    object: {
      name: 'shop',
      spec: { ...shop, capabilities: ['rest', 'graphql', 'grpc', 'mcp'], ttlSeconds: 60, source: 'API' },
    },
  },
  { kind, sentence: 'a name of 63 characters', object: named('a'.repeat(63)) },
  { kind, sentence: 'a name of 64 characters', object: named('a'.repeat(64)) },
  { kind, sentence: 'a name of 253 characters outside the basic plane', object: named('𝕒'.repeat(253)) },
  { kind, sentence: 'an upper-case name', object: named('Shop') },
  { kind, sentence: 'a non-ASCII name', object: named('größe-日本') },
  { kind, sentence: 'a name with dots and percent signs', object: named('...shop%2F.v2') },
  { kind, sentence: 'a quick-start URL', object: reachedAt('http://127.0.0.1:3000') },
  { kind, sentence: 'an IPv6 URL with path', object: reachedAt('https://[::1]:8443/base') },
  { kind, sentence: 'an upper-case scheme', object: reachedAt('HTTP://SHOP') },
  { kind, sentence: 'the highest port', object: reachedAt('http://shop:65535') },
  { kind, sentence: 'an @ in the path of the URL', object: reachedAt('http://shop/@v2') },
  { kind, sentence: 'a URL of 2048 characters', object: reachedAt(`http://shop/${'x'.repeat(2048 - 12)}`) },
  { kind, sentence: 'the shortest TTL', object: { name: 'shop', spec: { ...shop, ttlSeconds: 5 } } },
  { kind, sentence: 'the longest TTL', object: { name: 'shop', spec: { ...shop, ttlSeconds: 86400 } } },

  { kind, sentence: 'a check of its connection', object: checkedBy({ type: 'tcp' }) },
  { kind, sentence: 'a check of a path', object: checkedBy({ type: 'http', path: '/health?deep=1' }) },
  {
    kind,
    sentence: 'a check with all that it can have',
    object: checkedBy({
      type: 'grpc',
      service: 'acme.shop.v1.Shop',
      intervalSeconds: 300,
      timeoutSeconds: 60,
      failureThreshold: 1,
      successThreshold: 10,
    }),
  },
  {
    kind,
    sentence: 'a check of a port of its own',
    object: checkedBy({ type: 'tcp', port: 22 }),
    refusal: 'unknown field "spec.check.port"',
  },
  {
    kind,
    sentence: 'a path for TCP',
    object: checkedBy({ type: 'tcp', path: '/' }),
    refusal: 'path is for checks of the type http',
  },
  ...['/a/../b', '/%2E%2e', '/.?a'].map((path) => ({
    kind,
    sentence: `a dot segment in the path of a check: ${path}`,
    object: checkedBy({ type: 'http', path }),
    refusal: "path must not have the segments '.' and '..'",
  })),
  { kind, sentence: 'dots in a query', object: checkedBy({ type: 'http', path: '/.well-known/...?a=/../%' }) },
  {
    kind,
    sentence: 'half an escape in the path of a check',
    object: checkedBy({ type: 'http', path: '/%2?a' }),
    refusal: "path must not have a '%'",
  },
  ...['//evil.example/graphql', '//'].flatMap((path) => [
    {
      kind,
      sentence: `a host as the path of GraphQL: ${path}`,
      object: { name: 'shop', spec: { ...shop, graphqlPath: path } },
      refusal: "graphqlPath must not begin with '//'",
    },
    {
      kind,
      sentence: `a host as the path of a check: ${path}`,
      object: checkedBy({ type: 'http', path }),
      refusal: "path must not begin with '//'",
    },
  ]),
  ...['graphql', 'http://evil.example/', '/\\evil.example', '/a?b', '/a#b', '/a b', '/a\n'].map((path) => ({
    kind,
    sentence: `no path of GraphQL: ${JSON.stringify(path)}`,
    object: { name: 'shop', spec: { ...shop, graphqlPath: path } },
    refusal: 'should match',
  })),
  { kind, sentence: 'a path of GraphQL', object: { name: 'shop', spec: { ...shop, graphqlPath: '/v1.0/%2Fql' } } },
  {
    kind,
    sentence: 'a dot segment in the path of GraphQL',
    object: { name: 'shop', spec: { ...shop, graphqlPath: '/a/%2e%2E' } },
    refusal: "graphqlPath must not have the segments '.' and '..'",
  },
  {
    kind,
    sentence: 'half an escape in the path of GraphQL',
    object: { name: 'shop', spec: { ...shop, graphqlPath: '/%2' } },
    refusal: "graphqlPath must not have a '%'",
  },
  {
    kind,
    sentence: 'a service for HTTP',
    object: checkedBy({ type: 'http', service: 'a' }),
    refusal: 'service is for checks of the type grpc',
  },
  { kind, sentence: 'a name in metadata of 128 characters', object: chosenBy({ ['é'.repeat(128)]: 'zwei Worte' }) },
  { kind, sentence: 'metadata of 4096 characters', object: chosenBy(entries(4, 1023)) },
  { kind, sentence: 'metadata of 4097', object: chosenBy({ ...entries(4, 1023), b: '' }), refusal: '4096 characters' },
  { kind, sentence: '33 entries of metadata', object: chosenBy(entries(33, 0)), refusal: 'at most 32' },
  ...['', 'x'.repeat(129)].map((name) => ({
    kind,
    sentence: `a name in metadata of ${name.length} characters`,
    object: chosenBy({ [name]: '' }),
    refusal: 'metadata must have names of 1 to 128 characters',
  })),
  {
    kind,
    sentence: 'a control character in a name of metadata',
    object: chosenBy({ 'a\u202e': '' }),
    refusal: 'metadata must have names without control characters',
  },
  {
    kind,
    sentence: 'a control character in a value of metadata',
    object: chosenBy({ a: 'b\u0007' }),
    refusal: 'metadata must have values without control characters',
  },
  { kind, sentence: 'no spec', object: { name: 'shop' }, refusal: 'spec: Required value' },
  {
    kind,
    sentence: 'no service name',
    object: { name: 'shop', spec: { url: shop.url } },
    refusal: 'spec.serviceName: Required value',
  },
  {
    kind,
    sentence: 'no URL',
    object: { name: 'shop', spec: { serviceName: 'shop' } },
    refusal: 'spec.url: Required value',
  },
  { kind, sentence: 'a name with a joiner that a script needs', object: named('می\u200cخواهم') },
  { kind, sentence: 'an invisible sign in the name', object: named('a\u200bb'), refusal: nameFault },
  { kind, sentence: 'text that runs backwards in the name', object: named('a\u202eb'), refusal: nameFault },
  { kind, sentence: 'an invisible tag in the name', object: named('a\u{e0041}b'), refusal: nameFault },
  { kind, sentence: 'a hidden segment in the path', object: reachedAt('http://shop/.well-known/...') },
  { kind, sentence: 'a dot segment in the path', object: reachedAt('http://shop/a/../b'), refusal: 'the segments' },
  { kind, sentence: 'an encoded dot segment', object: reachedAt('http://shop/%2E%2e'), refusal: 'the segments' },
  { kind, sentence: 'half an escape in the path', object: reachedAt('http://shop/%z1'), refusal: 'hexadecimal' },
  { kind, sentence: 'an empty name', object: named(''), refusal: 'should be at least 1 chars long' },
  { kind, sentence: 'a name of 254 characters', object: named('é'.repeat(254)), refusal: 'may not be more than 253' },
  {
    kind,
    sentence: 'a name of 10,000 characters',
    object: named('x'.repeat(10_000)),
    refusal: 'may not be more than 253',
  },
  { kind, sentence: 'a colon in the name', object: named('a:b'), refusal: nameFault },
  { kind, sentence: 'a space in the name', object: named('a b'), refusal: nameFault },
  { kind, sentence: 'a no-break space in the name', object: named('a\u00a0b'), refusal: nameFault },
  { kind, sentence: 'a line separator in the name', object: named('a\u2028b'), refusal: nameFault },
  { kind, sentence: 'a tab in the name', object: named('a\tb'), refusal: nameFault },
  { kind, sentence: 'a line feed at the end of the name', object: named('shop\n'), refusal: nameFault },
  { kind, sentence: 'a NUL in the name', object: named('a\u0000b'), refusal: nameFault },
  { kind, sentence: 'a C1 control character in the name', object: named('a\u0085b'), refusal: nameFault },
  { kind, sentence: 'the name for all services', object: named('*'), refusal: "serviceName '*' is reserved" },
  {
    kind,
    sentence: 'a label under another object name',
    object: { name: 'store', spec: shop },
    refusal: objectNameFault,
  },
  {
    kind,
    sentence: 'a label under a hashed object name',
    object: { name: 'shop.0123456789abcdef', spec: shop },
    refusal: objectNameFault,
  },
  {
    kind,
    sentence: 'an upper-case name under a plain object name',
    object: { name: 'shop', spec: { ...shop, serviceName: 'Shop' } },
    refusal: objectNameFault,
  },
  {
    kind,
    sentence: 'an upper-case name with too short a hash',
    object: { name: 'shop.0123456789abcde', spec: { ...shop, serviceName: 'Shop' } },
    refusal: objectNameFault,
  },
  {
    kind,
    sentence: 'an upper-case name with two dots',
    object: { name: 'my.shop.0123456789abcdef', spec: { ...shop, serviceName: 'Shop' } },
    refusal: objectNameFault,
  },
  ...['.', '..', '..;a', 'a/b', 'a\\b', 'a\ufffd'].map((name) => ({
    kind,
    sentence: `the name ${name}, which no URL can name`,
    object: named(name),
    refusal: "serviceName must not be '.' or '..'",
  })),
  ...['?a=b', '/?', '#', '/base#top'].map((end) => ({
    kind,
    sentence: `a URL that ends in ${end}`,
    object: reachedAt(`http://shop${end}`),
    refusal: 'url must not have a query or a fragment',
  })),
  ...[':0', ':00/base'].map((end) => ({
    kind,
    sentence: `a URL that ends in ${end}`,
    object: reachedAt(`http://shop${end}`),
    refusal: 'url must not have port 0',
  })),
  { kind, sentence: 'a relative URL', object: reachedAt('/shop'), refusal: urlFault },
  { kind, sentence: 'a URL without a scheme', object: reachedAt('shop:8080'), refusal: urlFault },
  { kind, sentence: 'a URL without a host', object: reachedAt('http://'), refusal: urlFault },
  { kind, sentence: 'a backslash in the host', object: reachedAt('http://shop\\evil'), refusal: urlFault },
  { kind, sentence: 'a URL with a port alone', object: reachedAt('http://:80'), refusal: urlFault },
  { kind, sentence: 'a javascript: URL', object: reachedAt('javascript:alert(1)'), refusal: urlFault },
  { kind, sentence: 'a grpc: URL', object: reachedAt('grpc://shop:50051'), refusal: urlFault },
  {
    kind,
    sentence: 'a port above 65535',
    object: reachedAt('http://shop:65536'),
    refusal: 'must not have a port above',
  },
  {
    kind,
    sentence: 'a port that fits no integer',
    object: reachedAt(`http://shop:${'9'.repeat(30)}`),
    refusal: 'must not have a port above',
  },
  {
    kind,
    sentence: 'a password in the URL',
    object: reachedAt('http://me:word@shop'),
    refusal: 'must not carry credentials',
  },
  { kind, sentence: 'a user in the URL', object: reachedAt('http://me@shop/'), refusal: 'must not carry credentials' },
  {
    kind,
    sentence: 'a space in the URL',
    object: reachedAt('http://shop/a b'),
    refusal: 'must not contain white space',
  },
  {
    kind,
    sentence: 'a URL of 2049 characters',
    object: reachedAt(`http://shop/${'x'.repeat(2049 - 12)}`),
    refusal: 'may not be more than 2048',
  },
  { kind, sentence: 'a URL that is a number', object: reachedAt(80), refusal: 'must be of type string' },
  {
    kind,
    sentence: 'an unknown capability',
    object: { name: 'shop', spec: { ...shop, capabilities: ['soap'] } },
    refusal: 'supported values: "rest", "graphql", "grpc", "mcp"',
  },
  {
    kind,
    sentence: 'a capability twice',
    object: { name: 'shop', spec: { ...shop, capabilities: ['rest', 'rest'] } },
    refusal: 'Duplicate value: "rest"',
  },
  {
    kind,
    sentence: 'too short a TTL',
    object: { name: 'shop', spec: { ...shop, ttlSeconds: 4 } },
    refusal: 'should be greater than or equal to 5',
  },
  {
    kind,
    sentence: 'too long a TTL',
    object: { name: 'shop', spec: { ...shop, ttlSeconds: 86401 } },
    refusal: 'should be less than or equal to 86400',
  },
  {
    kind,
    sentence: 'a TTL of half seconds',
    object: { name: 'shop', spec: { ...shop, ttlSeconds: 7.5 } },
    refusal: 'must be of type integer',
  },
  {
    kind,
    sentence: 'an unknown source',
    object: { name: 'shop', spec: { ...shop, source: 'Gossip' } },
    refusal: 'supported values: "API", "KubernetesService", "Manifest"',
  },
  {
    kind,
    sentence: 'a misspelt field',
    object: { name: 'shop', spec: { ...shop, ttl: 60 } },
    refusal: 'unknown field "spec.ttl"',
  },
];

export const registrationUpdates: readonly Update[] = [
  {
    kind,
    sentence: 'another URL, other capabilities and another TTL',
    before: { name: 'shop', spec: shop },
    patch: { spec: { url: 'https://shop.example.com', capabilities: ['rest'], ttlSeconds: 30 } },
  },
  {
    kind,
    sentence: 'another service name',
    before: named('Shop'),
    patch: { spec: { serviceName: 'SHOP' } },
    refusal: 'serviceName is immutable',
  },
  {
    kind,
    sentence: 'a status with all its parts',
    before: { name: 'shop', spec: shop },
    subresource: 'status',
    patch: {
      status: {
        phase: 'Registered',
        phaseSince: '2026-11-20T12:00:00Z',
        registeredAt: '2026-11-20T14:00:00.123456+02:00',
        currentVersion: '1.2.3',
        health: {
          status: 'healthy',
          reportedAt: '2026-11-20T12:00:00Z',
          details: { uptime: 1.5, disks: [{ free: 1 }] },
        },
        check: { status: 'Failing', since: '2026-11-20T12:00:00Z', message: 'it answered 503' },
        lifecycle: { event: 'started', at: '2026-11-20T12:00:00Z', details: { pid: 42 } },
        observedGeneration: 1,
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'HeartbeatSeen',
            message: '',
            lastTransitionTime: '2026-11-20T12:00:00Z',
            observedGeneration: 1,
          },
        ],
      },
    },
  },
  {
    kind,
    sentence: 'an unknown phase',
    before: { name: 'shop', spec: shop },
    subresource: 'status',
    patch: { status: { phase: 'Lost' } },
    refusal: 'supported values: "Registered", "Expired"',
  },
  {
    kind,
    sentence: 'a time that is none',
    before: { name: 'shop', spec: shop },
    subresource: 'status',
    patch: { status: { phaseSince: 'yesterday' } },
    refusal: 'must be of type date-time',
  },
  {
    kind,
    sentence: 'two conditions of one type',
    before: { name: 'shop', spec: shop },
    subresource: 'status',
    patch: {
      status: {
        conditions: ['True', 'False'].map((status) => ({
          type: 'Ready',
          status,
          reason: 'Because',
          message: '',
          lastTransitionTime: '2026-11-20T12:00:00Z',
        })),
      },
    },
    refusal: 'Duplicate value',
  },
];
