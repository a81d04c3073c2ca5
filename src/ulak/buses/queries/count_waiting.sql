SELECT topic, count(*) FROM buses_waiting GROUP BY topic
