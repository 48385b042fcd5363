ctypedef unsigned short Count
