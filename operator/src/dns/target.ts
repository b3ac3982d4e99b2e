import { isIP } from 'node:net';
import type { ServiceRegistrationSpec } from '@rollcall/crds/types.gen.ts';
import { addressScope } from '@rollcall/platform/outbound/address-scope.ts';
import { bareHost, portOf } from '@rollcall/platform/outbound/url-host.ts';

/** The port of a Service that an instance listens on. */
export interface Port {
  readonly name: 'http' | 'https' | 'grpc';
  readonly port: number;
  readonly appProtocol: 'http' | 'https' | 'kubernetes.io/h2c';
}

/** Where an instance can be reached, as Services say it. */
export type Target =
  | { readonly at: 'address'; readonly addressType: 'IPv4' | 'IPv6'; readonly address: string; readonly port: Port }
  | { readonly at: 'host'; readonly host: string; readonly port: Port }
  | { readonly at: 'nowhere'; readonly reason: 'AddressNotPossible' | 'HostNotPossible'; readonly message: string };

export interface DnsZone {
  /** Where the Services are. */
  readonly namespace: string;
  /** Such as `cluster.local`. */
  readonly clusterDomain: string;
  /** Which host names are mirrored: those of the cluster's Services, or any. */
  readonly hostNames: 'services' | 'any';
}

const DNS_NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/;
const DNS_NAME_MAX_LENGTH = 253;
const NO_SERVICE =
  'is no Service of this cluster: register an address or <name>.<namespace>.svc, or have dns.externalNames set to any';
/** Its Service is in each cluster. */
const API_SERVER = 'kubernetes.default';
/** The API server refuses it in EndpointSlices. */
const IPV4_MAPPED = /^::ffff:/;

/** Reads the URL of a registration, which the API server has found to be one. */
export function targetOf(spec: ServiceRegistrationSpec, zone: DnsZone): Target {
  const url = new URL(spec.url);
  const port = servicePort(url, spec.capabilities);
  const address = bareHost(url.hostname);
  const family = isIP(address);
  if (family === 0) return hostTarget(url.hostname, port, zone);
  if (IPV4_MAPPED.test(address)) return unreachable(address, 'is to be registered as the IPv4 address that it is');
  if (addressScope(address) === 'special') {
    return unreachable(address, 'is loopback, link-local, multicast or reserved, and no one else can reach it');
  }
  return { at: 'address', addressType: family === 4 ? 'IPv4' : 'IPv6', address, port };
}

function unreachable(address: string, why: string): Target {
  return { at: 'nowhere', reason: 'AddressNotPossible', message: `${address} ${why}` };
}

function hostTarget(hostname: string, port: Port, { namespace, clusterDomain, hostNames }: DnsZone): Target {
  const given = hostname.replace(/\.$/, '');
  const host = given.endsWith('.svc') ? `${given}.${clusterDomain}` : given;
  const impossible = (why: string): Target => {
    return { at: 'nowhere', reason: 'HostNotPossible', message: `the host ${given} ${why}` };
  };
  if (host.length > DNS_NAME_MAX_LENGTH || !DNS_NAME.test(host)) return impossible('is no name that DNS can lead to');
  if (!host.includes('.')) return impossible('has no domain, and means another machine to everybody');
  const suffix = `.svc.${clusterDomain}`;
  const isOfCluster = host.endsWith(suffix);
  const labels = (isOfCluster ? host.slice(0, -suffix.length) : host).split('.');
  // Proxies that go through search domains take two labels for a Service and its namespace.
  if (isOfCluster || labels.length === 2) {
    if (labels.at(-1) === namespace) return impossible('is itself one of the registered names');
    if (labels.slice(-2).join('.') === API_SERVER) return impossible('is that of the API server');
  }
  const isService = isOfCluster && (labels.length === 2 || labels.length === 3);
  if (hostNames === 'services' && !isService) return impossible(NO_SERVICE);
  return { at: 'host', host, port };
}

function servicePort(url: URL, capabilities: ServiceRegistrationSpec['capabilities']): Port {
  const port = portOf(url);
  if (url.protocol === 'https:') return { name: 'https', port, appProtocol: 'https' };
  const isGrpc = capabilities.length > 0 && capabilities.every((capability) => capability === 'grpc');
  return isGrpc
    ? { name: 'grpc', port, appProtocol: 'kubernetes.io/h2c' }
    : { name: 'http', port, appProtocol: 'http' };
}
