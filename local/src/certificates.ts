import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isCode } from './file-lock.ts';

const run = promisify(execFile);

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly serverCertificate: string;
  readonly serverKey: string;
  /** A client of the group system:masters, for whom the API server has no limits. */
  readonly adminCertificate: string;
  readonly adminKey: string;
  readonly serviceAccountPrivateKey: string;
  readonly serviceAccountPublicKey: string;
}

/**
 * Makes a certificate authority, the API server's and the admin's certificate, and the key pair for service-account
 * tokens in the directory. Valid for ten years: they live as long as the cluster.
 *
 * @throws when OpenSSL 3 is not on the PATH.
 */
export async function createCertificates(directory: string): Promise<Certificates> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = (name: string): string => join(directory, name);
  await openssl([
    ...selfSigned(file('ca'), '/CN=rollcall-local-ca'),
    ...extensions(['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign']),
  ]);
  const signed = (name: string, subject: string, usage: string[]): Promise<void> =>
    openssl([
      ...selfSigned(file(name), subject),
      '-CA',
      file('ca.crt'),
      '-CAkey',
      file('ca.key'),
      ...extensions(['basicConstraints=critical,CA:FALSE', ...usage]),
    ]);
  const names = 'subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1';
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await Promise.all([
    signed('server', '/CN=kube-apiserver', ['extendedKeyUsage=serverAuth', names]),
    signed('admin', '/O=system:masters/CN=admin', ['extendedKeyUsage=clientAuth']),
    writeFile(file('service-accounts.key'), privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 }),
    writeFile(file('service-accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' })),
  ]);
  return {
    ca: file('ca.crt'),
    serverCertificate: file('server.crt'),
    serverKey: file('server.key'),
    adminCertificate: file('admin.crt'),
    adminKey: file('admin.key'),
    serviceAccountPrivateKey: file('service-accounts.key'),
    serviceAccountPublicKey: file('service-accounts.pub'),
  };
}

const NEW_CERTIFICATE = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650'.split(' ');

function selfSigned(file: string, subject: string): string[] {
  return [...NEW_CERTIFICATE, '-keyout', `${file}.key`, '-out', `${file}.crt`, '-subj', subject];
}

function extensions(values: readonly string[]): string[] {
  return values.flatMap((value) => ['-addext', value]);
}

async function openssl(args: readonly string[]): Promise<void> {
  try {
    await run('openssl', args);
  } catch (err) {
    const remedy = 'The certificates of the local control plane are made with OpenSSL 3 or newer (package "openssl")';
    const problem = isCode(err, 'ENOENT') ? 'it is not installed' : 'the one on the PATH failed';
    throw new Error(`${remedy}; ${problem}.`, { cause: err });
  }
}
