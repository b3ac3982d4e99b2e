import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import webPush from 'web-push';
import { parseProviders } from './providers-file.ts';

const pem = { type: 'pkcs8', format: 'pem' } as const;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem);
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export(pem);
const ec = p256.privateKey.export(pem);
const spki = p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
const vapid = { subject: 'mailto:a@b.example', ...webPush.generateVAPIDKeys() };

const from = { address: 'shop@shop.example' };
const fcm = { name: 'one', kind: 'fcm', projectId: 'shop', clientEmail: 'a@b.example', privateKey: rsa };
const apns = { name: 'one', kind: 'apns', teamId: 'T', keyId: 'K', topic: 'shop', privateKey: ec };
const webpush = { name: 'one', kind: 'webpush', vapid };
const sendgrid = { name: 'one', kind: 'sendgrid', apiKey: 'SG.x', notificationKey: spki };
const dkim = { domain: 'shop.example', selector: 's', privateKey: rsa };
const smpp = { name: 'one', kind: 'smpp', host: 'centre.example', systemId: 's', password: 'p', sender: 'Shop' };
const smtp = { name: 'one', kind: 'smtp', host: 'mail.example', bounceDomain: 'b.example', dkim };

const read = (file: unknown) => parseProviders(JSON.stringify(file), { addresses: 'public' });
const push = (entry: unknown) => ({ push: { providers: [entry] } });
const email = (entry: unknown) => ({ email: { from, providers: [entry] } });

test.each([push(fcm), push(apns), push(webpush), email(sendgrid), email(smtp)])(
  '%# has keys that are right',
  (file) => {
    expect(() => read(file)).not.toThrow();
  },
);

test.each([
  [push({ ...fcm, privateKey: 'SECRET' }), 'privateKey must be a private key of RSA'],
  [push({ ...fcm, privateKey: ec }), 'privateKey must be a private key of RSA'],
  [push({ ...apns, privateKey: 'SECRET' }), 'privateKey must be a private key of P-256'],
  [push({ ...apns, privateKey: rsa }), 'privateKey must be a private key of P-256'],
  [push({ ...apns, privateKey: p384 }), 'privateKey must be a private key of P-256'],
  [push({ ...webpush, vapid: { ...vapid, subject: 'SECRET' } }), 'vapid.subject must be'],
  [push({ ...webpush, vapid: { ...vapid, privateKey: 'SECRET' } }), 'vapid.publicKey and vapid.privateKey must be'],
  [
    push({ ...webpush, vapid: { ...vapid, publicKey: webPush.generateVAPIDKeys().publicKey } }),
    'vapid.publicKey and vapid.privateKey must be',
  ],
  [email({ ...sendgrid, notificationKey: 'SECRET' }), 'notificationKey must be'],
  [email({ ...smtp, dkim: { ...dkim, privateKey: 'SECRET' } }), 'dkim.privateKey must be'],
  [email({ ...smtp, ca: 'SECRET' }), 'ca must be one or more certificates as PEM'],
  [{ sms: { providers: [{ ...smpp, ca: 'SECRET' }] } }, 'ca must be one or more certificates as PEM'],
])('a wrong key is named when the file is read: case %#', (file, fault) => {
  expect(() => read(file)).toThrow(`the provider one: ${fault}`);
  expect(() => read(file)).not.toThrow('SECRET');
});
