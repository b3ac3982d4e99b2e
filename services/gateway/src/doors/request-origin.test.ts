import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { parseTrustedProxies } from '../admission/client-address.ts';
import { requestOrigin } from './request-origin.ts';

const trusted = parseTrustedProxies(['10.0.0.0/8', '2001:db8::1']);
const told = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example.com' };

function from(remoteAddress: string, headers: IncomingHttpHeaders): Pick<IncomingMessage, 'headers' | 'socket'> {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
  return { headers: { host: 'gateway', ...headers }, socket };
}

describe('where a request comes from', () => {
  test('is the connection, where no proxy is trusted', () => {
    const request = from('203.0.113.9', { 'x-forwarded-for': '1.2.3.4', ...told });
    expect(requestOrigin(request, trusted)).toEqual({
      clientAddress: '203.0.113.9',
      forwardedFor: '203.0.113.9',
      protocol: 'http',
      host: 'gateway',
    });
  });

  test('is what a trusted proxy says', () => {
    const request = from('10.1.2.3', { 'x-forwarded-for': '1.2.3.4, 203.0.113.5', ...told });
    expect(requestOrigin(request, trusted)).toEqual({
      clientAddress: '203.0.113.5',
      forwardedFor: '1.2.3.4, 203.0.113.5, 10.1.2.3',
      protocol: 'https',
      host: 'api.example.com',
    });
  });

  test('is a single IPv6 address, and a proxy of the same network is believed', () => {
    const request = from('2001:db8::1', { 'x-forwarded-for': '2001:DB8:0::2', ...told });
    expect(requestOrigin(request, trusted)).toEqual({
      clientAddress: '2001:db8::2',
      forwardedFor: '2001:DB8:0::2, 2001:db8::1',
      protocol: 'https',
      host: 'api.example.com',
    });
  });
});
