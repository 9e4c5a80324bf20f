// Asks for URLs as programs for Node do through a proxy: node client.js PROXY CA URL...
const fs = require("node:fs"), http = require("node:http"), https = require("node:https"), tls = require("node:tls");
const [proxy, ca, ...urls] = process.argv.slice(2);
const at = new URL(proxy), trust = fs.readFileSync(ca);

function answer(res) {
  let body = "";
  res.on("data", (part) => { body += part; });
  return new Promise((done) => res.on("end", () => done(res.statusCode + " " + (res.headers["proxy-status"] || body))));
}

function ask(url) {
  return new Promise((done, failed) => {
    const u = new URL(url);
    if (u.protocol === "http:") {
      http.get({ host: at.hostname, port: at.port, path: url, headers: { host: u.host } }, (r) => answer(r).then(done)).on("error", failed);
      return;
    }
    http.request({ host: at.hostname, port: at.port, method: "CONNECT", path: u.hostname + ":443" }).on("connect", (res, socket) => {
      if (res.statusCode !== 200) return done("CONNECT " + res.statusCode + " " + res.headers["proxy-status"]);
      const inner = tls.connect({ socket, servername: u.hostname, ca: trust });
      https.get({ host: u.hostname, port: 443, path: u.pathname, headers: { host: u.host }, createConnection: () => inner }, (r) => answer(r).then(done)).on("error", failed);
    }).on("error", failed).end();
  });
}

(async () => {
  for (const url of urls) console.log(await ask(url).catch((e) => String(e)));
  process.exit(0);
})();
