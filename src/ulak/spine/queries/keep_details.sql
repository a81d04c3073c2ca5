UPDATE past SET detail = :detail WHERE id = :id
