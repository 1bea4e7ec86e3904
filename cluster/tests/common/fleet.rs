//! Several servers: a primary with a replica and three sentinels, and a Redis Cluster.

use std::process::{Command, Stdio};

use super::{have_or_skip, program, until, Server};

/// A primary, a replica, and three sentinels that watch them as `main`.
pub struct Watched {
    pub primary: Server,
    pub replica: Server,
    pub sentinels: Vec<Server>,
}

/// The password of the sentinels.
pub const SENTINELS: &str = "watch";

impl Watched {
    pub fn start_or_skip() -> Option<Watched> {
        if !have_or_skip(&program(), "redis-server redis-sentinel") {
            return None;
        }
        let primary = Server::start(&[]);
        let replica = Server::start(&["--replicaof", "127.0.0.1", &primary.port().to_string()]);
        until("the replica follows", || replica.info("master_link_status").as_deref() == Some("up"));
        let watched = primary.port();
        let sentinel = |_| {
            Server::start_at(|port, folder| {
                let file = folder.join("sentinel.conf");
                let lines = [
                    format!("port {port}\nbind 127.0.0.1\nrequirepass {SENTINELS}\nsentinel sentinel-pass {SENTINELS}"),
                    format!("sentinel monitor main 127.0.0.1 {watched} 2"),
                    "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n".into(),
                ];
                std::fs::write(&file, lines.join("\n")).expect("a configuration");
                vec![file.display().to_string(), "--sentinel".into()]
            })
        };
        let sentinels: Vec<Server> = (0..3).map(sentinel).collect();
        let fleet = Watched { primary, replica, sentinels };
        until("the sentinels know each other and the replica", || {
            fleet.sentinels.iter().all(|sentinel| {
                let mut connection = sentinel.connect_as("default", SENTINELS).expect("a connection");
                let ask = redis::cmd("SENTINEL").arg("MASTER").arg("main").to_owned();
                let said: Vec<String> = ask.query(&mut connection).unwrap_or_default();
                let of = |name: &str| said.iter().position(|s| s == name).map(|i| said[i + 1].clone());
                of("num-slaves").as_deref() == Some("1") && of("num-other-sentinels").as_deref() == Some("2")
            })
        });
        Some(fleet)
    }

    /// The URL of a primary of this name.
    pub fn url(&self, name: &str) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        format!("redis+sentinel://{}/{name}", hosts.join(","))
    }
}

/// Primaries of a Redis Cluster, and then their replicas.
pub struct RedisCluster {
    pub servers: Vec<Server>,
}

impl RedisCluster {
    pub fn start_or_skip(primaries: usize, replicas: usize) -> Option<RedisCluster> {
        if !have_or_skip(&program(), "redis-server") || !have_or_skip("redis-cli", "redis-tools") {
            return None;
        }
        // They forget one that they shall meet after this time: a short one comes when they have met.
        let arguments = ["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"];
        let count = primaries * (1 + replicas);
        let cluster = RedisCluster { servers: (0..count).map(|_| Server::start(&arguments)).collect() };
        let mut words = vec!["create".to_owned()];
        words.extend(cluster.servers.iter().map(|s| format!("127.0.0.1:{}", s.port())));
        words.extend(["--cluster-replicas".into(), replicas.to_string()]);
        cluster.manage(&words);
        until("all serve", || {
            let serves =
                |s: &Server| s.say::<String>(&["CLUSTER", "INFO"]).is_ok_and(|i| i.contains("state:ok"));
            let follows = |s: &Server| {
                s.info("role").as_deref() == Some("master")
                    || s.info("master_link_status").as_deref() == Some("up")
            };
            cluster.servers.iter().all(|s| serves(s) && follows(s))
        });
        for server in &cluster.servers {
            server.say::<()>(&["CONFIG", "SET", "cluster-node-timeout", "1000"]).expect("ok");
        }
        Some(cluster)
    }

    /// `redis-cli --cluster ..`
    pub fn manage(&self, words: &[String]) {
        let mut done = Command::new("redis-cli");
        done.arg("--cluster").args(words).arg("--cluster-yes").stdin(Stdio::null());
        let done = done.output().expect("redis-cli");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stdout));
    }

    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.servers.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        format!("redis+cluster://{}", hosts.join(","))
    }

    /// The server of this id.
    pub fn id(&self, server: usize) -> String {
        self.servers[server].say(&["CLUSTER", "MYID"]).expect("an id")
    }
}
