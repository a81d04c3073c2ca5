SELECT job FROM notify_reference WHERE reference = :reference AND job < :before ORDER BY job DESC LIMIT :n
