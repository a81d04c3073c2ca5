SELECT hold FROM job WHERE id = :id
